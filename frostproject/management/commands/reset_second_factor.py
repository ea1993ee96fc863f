"""``reset_second_factor``: for users who lost their device; run on the server's machine."""

from argparse import ArgumentParser

from django.contrib.auth import get_user_model
from django.core.management import BaseCommand, CommandError
from django.utils.translation import gettext as _

from frostproject.signin import factors


class Command(BaseCommand):
    help = (
        "Takes every second factor of an account away: app, passkeys and recovery codes. Its "
        "password then does alone."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="The name of the account.")

    def handle(self, *arguments: object, **options: object) -> None:
        user = get_user_model()._default_manager.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(_("There is no account of this name: %s") % options["name"])
        if factors.delete_second_factors(user):
            self.stdout.write(
                _("The second factor of %s was taken away. The password does alone now.")
                % user.get_username()
            )
        else:
            self.stdout.write(_("%s has no second factor.") % user.get_username())
