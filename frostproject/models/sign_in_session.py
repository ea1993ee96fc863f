"""Where somebody is signed in."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class SignInSession(models.Model):
    """One browser that is signed in with every factor. Without its row it is signed out.

    The session of Django holds a random token, the row its hash: with the database alone nobody can
    take a session over, and the row stays the same when the session gets another key.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sign_in_sessions"
    )
    token_hash = models.CharField(max_length=64, unique=True)
    password_mark = models.CharField(
        max_length=16, help_text="Differs once the password was changed, which signs out."
    )
    address = models.CharField(max_length=64, blank=True)
    user_agent = models.CharField(max_length=400, blank=True)
    signed_in_at = models.DateTimeField()
    last_seen_at = models.DateTimeField(help_text="To some minutes.")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        verbose_name = _("sign-in session")
        verbose_name_plural = _("sign-in sessions")

    def __str__(self) -> str:
        return f"session {self.pk} of account {self.user_id}"
