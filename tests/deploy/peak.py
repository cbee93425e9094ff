"""What an instance needs at most, by docs/run/capacity.md: while it reloads."""


def most_tasks(workers: int, threads: int) -> int:
    """Return how many processes and threads a cgroup or a unit may count."""
    return 2 * workers * (4 * threads + 8) + 64


def most_bytes(workers: int) -> int:
    """Return the bytes of memory."""
    return (150 * workers + 200) * 1024**2
