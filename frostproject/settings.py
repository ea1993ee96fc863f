"""Django settings: the one reader of the environment.

Every variable is described in ``.env.example``; a test holds that file against
this one. Settings that exist as rows in the admin (tool configs) win over these.
"""

from pathlib import Path

from django.utils.translation import gettext_lazy as _

from frostproject.configuration import machine
from frostproject.configuration.env import Env, parse_database_url, sqlite_settings

BASE_DIR = Path(__file__).resolve().parent.parent
env = Env.load(BASE_DIR / ".env")
SETTING_SOURCES, SETTING_RANGES = env.sources, env.ranges

# --- Installation ---------------------------------------------------------------

DATA_DIR = machine.prepare_data_folder(
    Path(env.text("FROST_DATA_DIR", str(BASE_DIR / "data"))).expanduser().resolve()
)
MEDIA_DIR = DATA_DIR / "media"
RECEIVED_DIR = DATA_DIR / "received"
SECRET_KEY = machine.load_or_make_secret_key(DATA_DIR)
DEBUG = env.flag("DEBUG", default=False)
ALLOWED_HOSTS = env.words("DJANGO_ALLOWED_HOSTS") or machine.own_hosts()
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

# --- The model endpoint ---------------------------------------------------------

UPSTREAM_ENDPOINT = env.url("UPSTREAM_ENDPOINT", ("http", "https"))
UPSTREAM_API_KEY = env.text("UPSTREAM_API_KEY")
MODEL_NAME = env.text("MODEL_NAME")
VISUAL_MODEL_NAME = env.text("VISUAL_MODEL_NAME")
CODER_ENDPOINT = env.url("CODER_ENDPOINT", ("http", "https")) or UPSTREAM_ENDPOINT
CODER_API_KEY = env.text("CODER_API_KEY") or UPSTREAM_API_KEY
CODER_MODEL_NAME = env.text("CODER_MODEL_NAME", "qwen-coder-plus")
VISION_MODE = env.choice("VISION_MODE", "describe", ("describe", "native", "both"))
TRANSCRIBE_MODEL_NAME = env.text("TRANSCRIBE_MODEL_NAME")
EMBEDDING_MODEL_NAME = env.text("EMBEDDING_MODEL_NAME")
MCP_ALLOWED_COMMANDS = env.words("MCP_ALLOWED_COMMANDS")
MCP_SERVER_TOKEN = env.text("MCP_SERVER_TOKEN")

# --- Runs -----------------------------------------------------------------------

SYSTEM_PROMPT = env.text("SYSTEM_PROMPT", "你是一个乐于助人的助手。")
MAX_ITERATIONS = env.integer("MAX_ITERATIONS", 5, low=1, high=100)
MAX_CONTEXT_MESSAGES = env.integer("MAX_CONTEXT_MESSAGES", 20, low=2, high=10_000)
MAX_CONTEXT_CHARS = env.integer("MAX_CONTEXT_CHARS", 24_000, low=100, high=10_000_000)
LLM_TIMEOUT = env.seconds("LLM_TIMEOUT", 120, low=0.1, high=3600)
RUN_TIMEOUT = env.seconds("RUN_TIMEOUT", 300, low=0.1, high=86_400)
DEFER_TOOLS_ABOVE = env.integer("DEFER_TOOLS_ABOVE", 20, low=0, high=10_000)
APPROVAL_TIMEOUT = env.seconds("APPROVAL_TIMEOUT", 3600, low=1, high=30 * 86_400)

DJANGO_SUPERUSER_USERNAME = env.text("DJANGO_SUPERUSER_USERNAME", "admin")
DJANGO_SUPERUSER_PASSWORD = env.text("DJANGO_SUPERUSER_PASSWORD")
DJANGO_SUPERUSER_EMAIL = env.text("DJANGO_SUPERUSER_EMAIL")

# --- Pictures, voice and files ---------------------------------------------------

MEDIA_FETCH_SECONDS = env.seconds("MEDIA_FETCH_SECONDS", 45, low=1, high=600)
MEDIA_FETCH_MIB = env.integer("MEDIA_FETCH_MIB", 32, low=1, high=1024)
MEDIA_KEEP_DAYS = env.integer("MEDIA_KEEP_DAYS", 30, low=0, high=36_500)
MEDIA_KEEP_BYTES = env.gibibytes("MEDIA_KEEP_GIB", 5, low=0, high=1_048_576)
MEDIA_FREE_BYTES = env.gibibytes("MEDIA_FREE_GIB", 1, low=0, high=1_048_576)
MEDIA_PERSON_MIB_PER_DAY = env.integer("MEDIA_PERSON_MIB_PER_DAY", 200, low=0, high=1_048_576)
PICTURE_MAX_SIDE = env.integer("PICTURE_MAX_SIDE", 2048, low=64, high=16_384)
PICTURE_MAX_KIB = env.integer("PICTURE_MAX_KIB", 4096, low=32, high=65_536)
PICTURE_MAX_MEGAPIXELS = env.integer("PICTURE_MAX_MEGAPIXELS", 50, low=1, high=200)
FILE_EXCERPT_CHARS = env.integer("FILE_EXCERPT_CHARS", 8_000, low=100, high=1_000_000)
STICKERS_BY_VISION = env.flag("STICKERS_BY_VISION", default=False)

# --- How long the record is kept ---------------------------------------------------

RECORD_KEEP_DAYS = env.integer("RECORD_KEEP_DAYS", 0, low=0, high=36_500)
EVENT_KEEP_DAYS = env.integer("EVENT_KEEP_DAYS", 90, low=0, high=36_500)

WORKDAYS_FILE = DATA_DIR / "workdays.txt"
"""Holidays and the days worked in their place, where the operator has another calendar."""

# --- Backups ----------------------------------------------------------------------

BACKUP_DIR = DATA_DIR / "backups"
DAILY_BACKUP = env.flag("DAILY_BACKUP", default=False)
BACKUP_KEEP_BYTES = env.gibibytes("BACKUP_KEEP_GIB", 10, low=0, high=1_048_576)
FROST_BACKUP_PASSPHRASE = env.text("FROST_BACKUP_PASSPHRASE")

# --- Memory ----------------------------------------------------------------------

MEMORY_CHARS = env.integer("MEMORY_CHARS", 1_500, low=0, high=100_000)
MEMORY_EXTRACT_TURNS = env.integer("MEMORY_EXTRACT_TURNS", 0, low=0, high=1_000)
MEMORY_REVIEW_HOURS = env.integer("MEMORY_REVIEW_HOURS", 0, low=0, high=8_760)
SUMMARY_AFTER_MESSAGES = env.integer("SUMMARY_AFTER_MESSAGES", 0, low=0, high=1_000)

# --- Plugins ---------------------------------------------------------------------

PLUGINS_DIR = Path(env.text("PLUGINS_DIR", str(BASE_DIR / "plugins"))).expanduser().resolve()
PLUGIN_MEMORY_MIB = env.integer("PLUGIN_MEMORY_MIB", 512, low=64, high=1_048_576)
PLUGIN_CPU_SECONDS = env.integer("PLUGIN_CPU_SECONDS", 30, low=1, high=86_400)
PLUGIN_OPEN_FILES = env.integer("PLUGIN_OPEN_FILES", 256, low=32, high=1_048_576)
PLUGIN_PROCESSES = env.integer("PLUGIN_PROCESSES", 16, low=1, high=10_000)

# --- Watching it ------------------------------------------------------------------

METRICS_TOKEN = env.text("METRICS_TOKEN")
OTEL_EXPORTER_OTLP_ENDPOINT = env.url("OTEL_EXPORTER_OTLP_ENDPOINT", ("http", "https"))
OTEL_EXPORTER_OTLP_HEADERS = env.text("OTEL_EXPORTER_OTLP_HEADERS")
OTEL_SERVICE_NAME = env.text("OTEL_SERVICE_NAME", "frostagent")
VERSION_URL = env.url("VERSION_URL", ("http", "https"))
LOG_FORMAT = env.choice("LOG_FORMAT", "text", ("text", "json"))

# --- The one port ---------------------------------------------------------------

WS_LISTEN_ADDR = env.address("WS_LISTEN_ADDR", "0.0.0.0:1234")
WS_ALLOWED_ORIGINS = env.words("WS_ALLOWED_ORIGINS")
ADMIN_NETWORKS = env.networks("ADMIN_NETWORKS", "private")
TRUST_LOOPBACK = env.flag("TRUST_LOOPBACK", default=False)
ONEBOT_ACCESS_TOKEN = env.text("ONEBOT_ACCESS_TOKEN") or machine.load_or_make_token(
    DATA_DIR, "ONEBOT_ACCESS_TOKEN"
)
HTTP_API_TOKEN = env.text("HTTP_API_TOKEN") or machine.load_or_make_token(
    DATA_DIR, "HTTP_API_TOKEN"
)
FETCH_ALLOW = env.destinations("FETCH_ALLOW")

# OneBot clients put whole pictures into one frame; daphne's own limit is 1 MiB.
DAPHNE_WEBSOCKET_MAX_MESSAGE_SIZE = 64 * 2**20
DAPHNE_WEBSOCKET_MAX_FRAME_SIZE = 64 * 2**20

# --- Who is answered, and how ---------------------------------------------------

ENABLE_AT_IN_GROUP_MSG = env.flag("ENABLE_AT_IN_GROUP_MSG", default=True)
ENABLE_REPLY_IN_GROUP_MSG = env.flag("ENABLE_REPLY_IN_GROUP_MSG", default=False)
GROUP_REPLY_ON_MENTION = env.flag("GROUP_REPLY_ON_MENTION", default=True)
BOT_NAME = env.text("BOT_NAME")
BOT_ALIASES = env.words("BOT_ALIASES")
PERSON_ANSWERS_PER_MINUTE = env.integer("PERSON_ANSWERS_PER_MINUTE", 12, low=0, high=1_000_000)
PERSON_ANSWERS_PER_DAY = env.integer("PERSON_ANSWERS_PER_DAY", 300, low=0, high=1_000_000)
CHAT_ANSWERS_PER_MINUTE = env.integer("CHAT_ANSWERS_PER_MINUTE", 40, low=0, high=1_000_000)
CHAT_ANSWERS_PER_DAY = env.integer("CHAT_ANSWERS_PER_DAY", 0, low=0, high=1_000_000)
TOKENS_PER_DAY = env.integer("TOKENS_PER_DAY", 5_000_000, low=0, high=10**15)

# --- Tests ----------------------------------------------------------------------

FROST_FAULT = env.text("FROST_FAULT")

# --- Django ---------------------------------------------------------------------

INSTALLED_APPS = [
    "frostproject",
    "daphne",
    "frostproject.apps.FrostAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_otp",
    "django_otp_webauthn",
    "channels",
    "onebot",
    "agent",
    "tools",
]

MIDDLEWARE = [
    "frostproject.web.browser_policy.browser_policy",
    "django.middleware.security.SecurityMiddleware",
    "frostproject.web.compression.CompressText",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "frostproject.signin.record.sign_in_sessions",
    "django.contrib.messages.middleware.MessageMiddleware",
    "frostproject.web.page_context.context_of_pages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frostproject.web.direction_signs.direction_signs",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "frostproject.urls"
ASGI_APPLICATION = "frostproject.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

DATABASE_URL = env.text("DATABASE_URL")
DATABASES = {
    "default": parse_database_url("DATABASE_URL", DATABASE_URL)
    if DATABASE_URL
    else sqlite_settings(DATA_DIR / "frostagent.sqlite3")
}

REDIS_URL = env.url("REDIS_URL", ("redis", "rediss", "unix"))
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        # redis-py gives every socket a time-out of 5 s by default, which ends the
        # layer's blocking read, and with it the consumer, on every idle connection.
        "CONFIG": {"hosts": [{"address": REDIS_URL, "socket_timeout": None}]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
    )
]

AUTHENTICATION_BACKENDS = [
    "agent.access.own_permissions.OwnChatsBackend",  # first: it may refuse
    "django.contrib.auth.backends.ModelBackend",
    "django_otp_webauthn.backends.WebAuthnBackend",
]
OTP_WEBAUTHN_HELPER_CLASS = "frostproject.signin.passkeys.PasskeyHelper"
OTP_WEBAUTHN_RP_ID_CALLABLE = "frostproject.signin.passkeys.passkey_domain"
OTP_WEBAUTHN_RP_NAME = "FrostAgent"
OTP_WEBAUTHN_EXCEPTION_LOGGER_NAME = ""  # a traceback for whatever a stranger sends
SILENCED_SYSTEM_CHECKS = [
    "otp_webauthn.E030"
]  # origins follow the address that a page was opened under

LANGUAGE_CODE = env.choice("LANGUAGE_CODE", "zh-hans", ("zh-hans", "en"))
LANGUAGES = [("zh-hans", _("Simplified Chinese")), ("en", _("English"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["frostproject.formats"]
MACHINE_TIME_ZONE = machine.local_time_zone()
TIME_ZONE = MACHINE_TIME_ZONE  # until a row names another: tools.local_time
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = machine.prepare_data_folder(DATA_DIR / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "frostproject.web.browser_policy.VersionedStaticFiles"},
}
WHITENOISE_USE_FINDERS = True  # the admin's files are served without a collectstatic step

SESSION_ENGINE = "frostproject.signin.session_store"
# Counted from signing in: a working day, without a write to the database for each page view.
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
# Where every origin that browsers use is https, nothing is to be had without it.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = bool(CSRF_TRUSTED_ORIGINS) and all(
    origin.lower().startswith("https://") for origin in CSRF_TRUSTED_ORIGINS
)
CSRF_FAILURE_VIEW = "frostproject.signin.plain_http.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
DEFAULT_EXCEPTION_REPORTER = "frostproject.web.debug_page.RedactingReporter"
DEFAULT_EXCEPTION_REPORTER_FILTER = "frostproject.web.debug_page.RedactingFilter"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {
            "()": "frostproject.web.logs.RedactingFormatter",
            "format": "%(asctime)s %(levelname)-7s %(name)s: %(message)s",
        },
        "json": {"()": "frostproject.web.logs.JsonFormatter"},
    },
    "filters": {"refused": {"()": "frostproject.web.logs.RefusedRequests"}},
    "handlers": {
        "console": {
            "class": "logging.StreamHandler",
            "formatter": LOG_FORMAT,
            "filters": ["refused"],
        },
        "page": {
            "class": "frostproject.web.logs.RecentLines",
            "formatter": "text",
            "filters": ["refused"],
        },
    },
    "root": {"handlers": ["console", "page"], "level": "INFO"},
    "loggers": {
        "django": {
            "handlers": [],
            "level": "INFO",
        },  # its own handler, there with DEBUG, would print lines as they come
        "django.channels.server": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "watchfiles": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},
    },
}
