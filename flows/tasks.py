"""What all flows share of Prefect: the one task that every stage runs in, and the names of runs."""

from collections.abc import Callable
from pathlib import Path

from prefect import runtime, task
from prefect.cache_policies import NO_CACHE

from flows.artifacts import Outcome


def run_name(words: str) -> Callable[[], str]:
    """The name of a flow run from its parameters, as "train model: {study} {model}"; a study's path is shortened.

    Parameters of flows are short strings and nothing else: a server keeps them, and refuses large ones.
    """

    def name() -> str:
        parameters = runtime.flow_run.parameters
        return words.format(**{**parameters, "study": Path(parameters["study"]).stem})

    return name


@task(task_run_name="{stage}: {name}", cache_policy=NO_CACHE, persist_result=False)
def build_stage(stage: str, name: str, work: Callable[[], Outcome]) -> Outcome:  # noqa: ARG001  Prefect shows the names
    """The stage's artifact, found or built by ``work``, under the names that Prefect shows.

    Prefect's own caching stays off: the artifact store knows better. ``work`` is a closure because Prefect looks
    through every other kind of parameter for futures.
    """
    return work()
