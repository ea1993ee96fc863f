from django.apps import AppConfig
from django.contrib.admin import apps as admin_apps
from django.contrib.admin.checks import check_dependencies
from django.core import checks


class FrostProjectConfig(AppConfig):
    name = "frostproject"
    default = True

    def ready(self) -> None:
        from django.db.backends.signals import connection_created

        from frostproject.configuration import checks  # noqa: F401 - registers the system checks
        from frostproject.signin import record
        from frostproject.start import database_damage

        connection_created.connect(database_damage.watch_database_errors)
        record.connect_sign_in_signals()


class FrostAdminConfig(admin_apps.SimpleAdminConfig):
    """Pages are registered when their addresses are read (:mod:`frostproject.urls`), not at every
    start."""

    default = False  # of this package; it is named in the settings
    default_site = "frostproject.cockpit.site.CockpitSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)  # those of pages load them first
