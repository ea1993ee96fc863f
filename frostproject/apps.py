from django.apps import AppConfig


class FrostProjectConfig(AppConfig):
    name = "frostproject"

    def ready(self) -> None:
        from frostproject import checks  # noqa: F401 - registers the system checks
