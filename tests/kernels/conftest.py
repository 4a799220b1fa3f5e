"""Kernel tests run on the GPU when there is one, else under Triton's interpreter."""

import os

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    # Triton reads it when a kernel is decorated, so it has to be set before any kernel's import.
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(scope="session")
def device() -> torch.device:
    """Where tensors of the kernel tests live."""
    return torch.device(DEVICE)
