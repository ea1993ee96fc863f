"""The endpoints that the environment names."""

from django.conf import settings

from agent.domain.endpoint import Ability, Endpoint
from agent.llm.endpoints.endpoint_table import EndpointTable

CHATS = frozenset({Ability.CHAT, Ability.TOOLS})


def environment_endpoints() -> dict[str, Endpoint]:
    """What the settings name, by what it is called there; a vision model is never the one that
    answers."""
    url, key = settings.UPSTREAM_ENDPOINT, settings.UPSTREAM_API_KEY
    coder_url, coder_key = settings.CODER_ENDPOINT, settings.CODER_API_KEY
    named = {
        "UPSTREAM": (url, key, settings.MODEL_NAME, CHATS),
        "VISUAL": (url, key, settings.VISUAL_MODEL_NAME, {Ability.SEE}),
        "CODER": (coder_url, coder_key, settings.CODER_MODEL_NAME, CHATS),
        "TRANSCRIBE": (url, key, settings.TRANSCRIBE_MODEL_NAME, {Ability.TRANSCRIBE}),
        "EMBEDDING": (url, key, settings.EMBEDDING_MODEL_NAME, {Ability.EMBED}),
    }
    return {
        name: Endpoint(
            url=url,
            keys=(key,) if key else (),
            model=model,
            abilities=frozenset(abilities),
            timeout_seconds=settings.LLM_TIMEOUT,
            environment=name,
        )
        for name, (url, key, model, abilities) in named.items()
        if url and (model or name == "UPSTREAM")
    }


def environment_table() -> EndpointTable:
    """The table of an installation without rows."""
    return EndpointTable(environment=environment_endpoints())
