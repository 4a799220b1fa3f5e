"""A Triton device called `cpu`: the interpreter runs the kernels, so nothing is compiled for it.

It lets the V2 model runner, whose kernels are all Triton's, run where there is no GPU. It is sent
to the target under a name of its own, and only found there next to `TRITON_INTERPRET=1`: wherever
it can be imported, vLLM believes that Triton works.
"""
