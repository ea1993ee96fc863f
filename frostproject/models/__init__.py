"""What is on record of accounts: how they signed in, and their second factors."""

from frostproject.models.authenticator_app import AuthenticatorApp
from frostproject.models.recovery_code import RecoveryCode, RecoveryCodes
from frostproject.models.sign_in import FailedSignIns, SignInRecord
from frostproject.models.sign_in_session import SignInSession

__all__ = [
    "AuthenticatorApp",
    "FailedSignIns",
    "RecoveryCode",
    "RecoveryCodes",
    "SignInRecord",
    "SignInSession",
]
