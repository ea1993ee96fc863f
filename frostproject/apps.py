from django.apps import AppConfig


class FrostProjectConfig(AppConfig):
    name = "frostproject"

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from frostproject import checks, damage  # noqa: F401 - registers the system checks

        connection_created.connect(damage.watch)
