"""Which of several distributions that claim the package is the one that really wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..targets.source import Source
from .distribution import Distribution
from .record import Record, RecordEntry, parse_record


def record_of(distribution: Distribution) -> Record | None:
    """The RECORD of a distribution; None if it has none or lists nothing of the package."""
    try:
        record = parse_record(distribution.site.read(f"{distribution.folder}/RECORD"))
    except OSError:
        return None
    listed = any(path.startswith("vllm/") for path in record.entries)
    return record if listed else None


def rank_owners(owners: Sequence[Distribution], source: Source) -> list[Distribution]:
    """The claimants, first the one whose RECORD matches most bytes that the records contest."""
    if len(owners) < 2:
        return list(owners)
    records = [_entries(record_of(owner)) for owner in owners]
    contested = {
        path
        for record in records
        for path in record
        if any(other.get(path) != record[path] for other in records)
    }
    scores = [_matching_bytes(record, contested, source) for record in records]
    order = sorted(range(len(owners)), key=lambda index: (-scores[index], owners[index].folder))
    return [owners[index] for index in order]


def _entries(record: Record | None) -> Mapping[str, RecordEntry]:
    return record.entries if record else {}


def _matching_bytes(record: Mapping[str, RecordEntry], contested: set[str], source: Source) -> int:
    files = source.files()
    total = 0
    for path in contested & record.keys() & files.keys():
        entry, size = record[path], files[path].size
        if entry.size in (None, size) and _same_hash(entry, path, source):
            total += size
    return total


def _same_hash(entry: RecordEntry, path: str, source: Source) -> bool:
    if entry.algorithm is None:
        return False
    try:
        return source.digest(path, entry.algorithm) == entry.digest
    except OSError:
        return False
