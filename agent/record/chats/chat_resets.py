"""A fresh start for a chat: the model is shown nothing of what was said before."""

from agent.models import ChatSession


def reset_context(session_pk: int, message_pk: int) -> None:
    """Let the context of a chat begin behind the message; nothing is deleted. What the run loop
    keeps for the chat goes too: a continuation, and the tools that were found."""
    ChatSession.objects.filter(pk=session_pk).update(
        context_after=message_pk, is_continuing=False, discovered_tools=[]
    )
