"""The states and kinds of the record: the words that its columns hold, and that the run loop speaks
without the ORM."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _, gettext_noop, pgettext_lazy


class MessageState(TextChoices):
    # Of an incoming message:
    RECORDED = "recorded", _("recorded")
    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    ANSWERED = "answered", _("answered")
    SILENT = "silent", _("silent")
    EXPIRED = "expired", _("expired")
    # Of an outgoing message:
    PENDING = "pending", _("pending")
    SENT = "sent", _("sent")
    DELIVERED = "delivered", _("delivered")
    UNKNOWN = "unknown", _("unknown")
    # Of both:
    FAILED = "failed", _("failed")


class MessageReason(TextChoices):
    """Why an incoming message is answered, or why it is not."""

    PRIVATE = "private", _("private message")
    MENTION = "mention", _("the bot was mentioned")
    WAKE_WORD = "wake_word", _("a wake word was said")
    QUOTE = "quote", _("the bot's own message was quoted")
    PREFIX = "prefix", _("it begins with a wake prefix")
    PATTERN = "pattern", _("a wake pattern was found in it")
    CHANCE = "chance", _("chosen by chance")
    ALWAYS = "always", _("every message is answered here")
    FOLLOW_UP = "follow_up", _("it follows a message of the same person")
    COMMAND = "command", _("a command")
    DECISION = "decision", _("a word on a call that waits for approval")
    LATER_RESULT = "later_result", _("the later result of a tool call")
    REMINDER = "reminder", _("a reminder")
    EVENT = "event", _("something happened in the chat that a rule is for")
    KEYWORD = "keyword", _("it says a keyword")
    NOT_ADDRESSED = "not_addressed", _("not addressed to the bot")
    GROUPS_OFF = "groups_off", _("answers in groups are switched off")
    OWN_MESSAGE = "own_message", _("said by the bot's own account")
    OTHER_BOT = "other_bot", _("said by another bot connected here")
    SYSTEM_NOTICE = "system_notice", _("a system notice of the group")
    EMPTY = "empty", _("an empty message")
    TOO_OLD = "too_old", _("too old when it arrived")
    BLOCKED = "blocked", _("this person or group is never answered")
    NOT_LISTED = "not_listed", _("not among those who are answered")
    PERSON_LIMIT = "person_limit", _("this person was answered as often as is allowed")
    CHAT_LIMIT = "chat_limit", _("this chat was answered as often as is allowed")
    TOKEN_LIMIT = "token_limit", _("the tokens of the day are used up")
    BUDGET = "budget", _("a budget did not allow it")
    LOOP = "loop", _("too many exchanges in a row, as between two bots")
    SILENCED = "silenced", _("this chat is silenced")
    ONLY_ONE = "only_one", _("only one person is answered here for now")
    QUIET_HOURS = "quiet_hours", _("said in quiet hours")
    PRIVATE_OFF = "private_off", _("private messages are not answered")
    NOT_FRIEND = "not_friend", _("only private messages of friends are answered")
    PAUSED = "paused", _("the bot may not speak in this chat")
    TAKEN_OVER = "taken_over", _("an operator answers here")
    RECALLED = "recalled", _("taken back before it was answered")
    STOPPED = "stopped", _("the answer was stopped")
    MERGED = "merged", _("answered together with a later message")
    OWNER_NOTE = "owner_note", _("a note to the owner")
    QUEUE_FULL = "queue_full", _("too many messages were waiting in this chat")


#: Reasons of messages that nobody said when they came.
UNSAID = frozenset({MessageReason.LATER_RESULT, MessageReason.REMINDER, MessageReason.EVENT})


#: Reasons of messages that a rule is for.
BY_RULES = frozenset({MessageReason.EVENT, MessageReason.KEYWORD})


class ReminderKind(TextChoices):
    TEXT = "text", _("fixed text")
    TASK = "task", _("task for the model")


class ReminderState(TextChoices):
    WAITING = "waiting", _("waiting")
    PAUSED = "paused", pgettext_lazy("reminder", "paused")
    DONE = "done", _("done")
    CANCELLED = "cancelled", _("cancelled")
    MISSED = "missed", pgettext_lazy("reminder", "missed")
    FAILED = "failed", _("failed")


class LateReminder(TextChoices):
    """What becomes of a reminder that could not be said at its instant."""

    TELL = "tell", _("told as late")
    DROP = "drop", _("dropped")


class PauseReason(TextChoices):
    """Why the account cannot speak in a chat."""

    MUTED = "muted", _("muted")
    ALL_MUTED = "all_muted", _("everybody in the group is muted")
    LEFT = "left", _("no longer in the group")
    BLOCKED = "blocked", _("the client refuses messages to this chat")


class MessageDirection(TextChoices):
    IN = "in", _("in")
    OUT = "out", _("out")


class RunOrigin(TextChoices):
    CHAT = "chat", _("chat")
    TERMINAL = "terminal", _("terminal")
    HTTP = "http", _("HTTP")
    AGENT = "agent", _("another agent")
    MCP = "mcp", _("MCP client")
    TEST = "test", _("test by an operator")


class RunState(TextChoices):
    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")
    INTERRUPTED = "interrupted", _("interrupted")
    STOPPED = "stopped", _("stopped")


class StepPhase(TextChoices):
    TIMING = "timing", _("timing gate")
    ACTION = "action", _("planner")


class ToolCallState(TextChoices):
    WAITING = "waiting", _("waiting")
    RUNNING = "running", _("running")
    PENDING = "pending", _("outcome to come")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    UNKNOWN = "unknown", _("unknown")


class SessionKind(TextChoices):
    GROUP = "group", pgettext_lazy("chat", "group")
    PRIVATE = "private", _("private")


class NoteOwner(TextChoices):
    """The person or thing that the note is about."""

    PERSON = "person", _("person")
    GROUP = "group", pgettext_lazy("chat", "group")
    SESSION = "session", _("chat session")


class NoteVisibility(TextChoices):
    CHAT = "chat", _("this chat")
    PERSON = "person", _("this person, in private chats only")
    EVERYONE = "everyone", _("everyone")


class NoteSource(TextChoices):
    USER = "user", _("told by a user")
    MODEL = "model", _("written by the model")
    OPERATOR = "operator", _("written by the operator")
    EXTRACTED = "extracted", _("extracted from the conversation")


class ApprovalState(TextChoices):
    WAITING = "waiting", _("waiting")
    APPROVED = "approved", _("approved")
    REFUSED = "refused", _("refused")
    EXPIRED = "expired", _("expired")


class ActKind(TextChoices):
    SILENCE = "silence", _("silenced the chat")
    SPEAK = "speak", _("let the chat speak")
    ONLY = "only", _("let only one person be answered")
    EVERYBODY = "everybody", _("let everybody be answered again")
    LIFT = "lift", _("lifted the pause")
    RESET = "reset", _("reset the context")
    PERSONA = "persona", _("chose a persona")
    MODEL = "model", _("chose a model")
    ANSWER = "answer", _("answered by hand")
    TAKE_OVER = "take_over", _("took over")
    HAND_BACK = "hand_back", _("handed back")
    RESEND = "resend", _("sent again")
    CANCEL = "cancel", _("cancelled the run")
    STOP_CALL = "stop_call", _("stopped a tool call")
    ASK_AGAIN = "ask_again", _("asked again without sending")
    EXPORT = "export", _("exported the chat")
    ERASE = "erase", _("erased a person")
    UNDO = "undo", _("undid an answer")
    MUTE = "mute", _("muted a member")
    UNMUTE = "unmute", _("unmuted a member")
    MUTE_GROUP = "mute_group", _("muted or unmuted the group")
    KICK = "kick", _("removed a member")
    RECALL = "recall", _("took a message back")
    LET_IN = "let_in", _("approved a request")
    KEEP_OUT = "keep_out", _("refused a request")


#: What the record says of a message for an account that was away.
AWAY = gettext_noop("the account is not connected")
#: What the record says of a message that was not written for it.
NOT_WRITTEN = {
    PauseReason.MUTED: gettext_noop("not sent: the account is muted in this chat"),
    PauseReason.ALL_MUTED: gettext_noop("not sent: everybody in this group is muted"),
    PauseReason.LEFT: gettext_noop("not sent: the account is no longer in this group"),
    PauseReason.BLOCKED: gettext_noop("not sent: the client refuses messages to this chat"),
}


@dataclass(frozen=True, slots=True)
class Pause:
    """Why the account cannot speak in a chat, and until when; None: until it is lifted."""

    reason: PauseReason
    until: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.until is not None and self.until <= now


# Claims: the right to work on a run, which ends when another process takes the run over.
#
# A process that slept past its lease does not know that it did. What keeps it from writing and
# sending is not its own clock but a number on record: it grows each time the work changes hands
# (a fencing token, as in Kleppmann's "How to do distributed locking").

#: The claim number of the process that receives a message.
FIRST_CLAIM = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim under which a run is worked on: the run's key, and the number that the claim has.

    ``place`` is the chat that the run speaks in (:attr:`agent.domain.types.ChatAddress.place`), ""
    for
    a run without one. A claim holds as long as the row of the run has the same number and place.
    """

    run_pk: int
    number: int = 0
    place: str = ""


class RouteKind(TextChoices):
    """How alerts can go out."""

    WEBHOOK = "webhook", _("webhook")
    OWNERS = "owners", _("owners, in private")
    MAIL = "mail", _("mail")
    SERVERCHAN = "serverchan", "Server酱"
    BARK = "bark", "Bark"
    TELEGRAM = "telegram", "Telegram"
    DINGTALK = "dingtalk", _("DingTalk")
    FEISHU = "feishu", _("Feishu")
    WECOM = "wecom", _("WeCom robot")
    PUSHPLUS = "pushplus", "PushPlus"
    PUSHDEER = "pushdeer", "PushDeer"
    NTFY = "ntfy", "ntfy"
    GOTIFY = "gotify", "Gotify"
    DISCORD = "discord", "Discord"
    SLACK = "slack", "Slack"
