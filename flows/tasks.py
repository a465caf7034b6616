"""The one Prefect task that every stage runs in, named by what it works on."""

from collections.abc import Callable

from prefect import task
from prefect.cache_policies import NO_CACHE

from flows.artifacts import Outcome


@task(task_run_name="{stage}: {name}", cache_policy=NO_CACHE, persist_result=False)
def build_stage(stage: str, name: str, work: Callable[[], Outcome]) -> Outcome:  # noqa: ARG001  Prefect shows the names
    """The stage's artifact, found or built by ``work``, under the names that Prefect shows.

    Prefect's own caching stays off: the artifact store knows better. ``work`` is a closure because Prefect looks
    through every other kind of parameter for futures.
    """
    return work()
