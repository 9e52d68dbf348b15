"""The objects by which clients ask who somebody is and what somebody may do; they are answered, never stored.

Source: pkg/registry/{authentication,authorization}.
"""

from __future__ import annotations

from typing import Any

from kube_pyscheduler.devserver.access.rbac import Attributes, Authorizer
from kube_pyscheduler.devserver.access.tokens import AUDIENCE, DEFAULT_EXPIRATION, MIN_EXPIRATION, Tokens
from kube_pyscheduler.devserver.access.users import User
from kube_pyscheduler.devserver.errors import Cause, bad_request, invalid, not_found
from kube_pyscheduler.devserver.resources import SERVICE_ACCOUNTS
from kube_pyscheduler.devserver.store import Object, Store
from kube_pyscheduler.devserver.times import timestamp


class Reviews:
    """Answers reviews of one server."""

    def __init__(self, store: Store, tokens: Tokens, authorizer: Authorizer) -> None:
        self._store = store
        self._tokens = tokens
        self._authorizer = authorizer

    def answer(self, kind: str, body: Object, user: User, namespace: str) -> Object:
        """The review with its status, as ``user`` gets it. 400 and 422 for one that can't be answered."""
        spec = body.get("spec") or {}
        match kind:
            case "TokenReview":
                status = self._token(spec)
            case "SelfSubjectReview":
                status = {"userInfo": user.info()}
            case "SelfSubjectRulesReview":
                status = self._rules(user, spec.get("namespace", ""))
            case "SelfSubjectAccessReview":
                status = self._access(kind, user, spec)
            case "LocalSubjectAccessReview":
                if (spec.get("resourceAttributes") or {}).get("namespace") != namespace:
                    raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
                status = self._access(kind, _subject(kind, spec), spec)
            case _:
                status = self._access(kind, _subject(kind, spec), spec)
        metadata = {**(body.get("metadata") or {}), "creationTimestamp": None}
        return {**body, "metadata": metadata, "status": status}

    def _token(self, spec: dict[str, Any]) -> Object:
        token = spec.get("token")
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        audiences = spec.get("audiences") or [AUDIENCE]
        user = self._tokens.user_of(token, audiences)
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user.info(), "audiences": audiences}

    def _access(self, kind: str, user: User, spec: dict[str, Any]) -> Object:
        about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (about is None) == (path is None):
            which = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise invalid(
                kind,
                "authorization.k8s.io",
                "",
                [Cause("FieldValueInvalid", f"Invalid value: null: {which}", "spec.resourceAttributes")],
            )
        if path is not None:
            attributes = Attributes(verb=path.get("verb", ""), path=path.get("path", ""))
        else:
            keys = ("verb", "group", "resource", "subresource", "namespace", "name")
            attributes = Attributes(**{key: (about or {}).get(key) or "" for key in keys})
        decision = self._authorizer.decide(user, attributes)
        status: Object = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        return status

    def _rules(self, user: User, namespace: str) -> Object:
        if not self._authorizer.enforce:
            everything = {"verbs": ["*"]}
            return {
                "resourceRules": [{**everything, "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{**everything, "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        rules = [rule for _, rule in self._authorizer.rules(user, namespace)]
        return {
            "resourceRules": [rule for rule in rules if rule.get("resources")],
            "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }

    def token_request(self, namespace: str, name: str, body: Object) -> Object:
        """``serviceaccounts/token``: the request with a fresh token. 404, 422 for a lifetime under ten minutes."""
        account = self._store.get(SERVICE_ACCOUNTS, namespace, name)
        if account is None:
            raise not_found("serviceaccounts", name)
        spec = body.get("spec") or {}
        seconds = spec.get("expirationSeconds") or DEFAULT_EXPIRATION
        if seconds < MIN_EXPIRATION:
            why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
            cause = Cause("FieldValueInvalid", why, "spec.expirationSeconds")
            raise invalid("TokenRequest", "authentication.k8s.io", name, [cause])
        audiences = spec.get("audiences") or [AUDIENCE]
        token, expires = self._tokens.issue(namespace, name, account["metadata"]["uid"], seconds, audiences)
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": None},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }


def _subject(kind: str, spec: dict[str, Any]) -> User:
    if not spec.get("user") and not spec.get("groups"):
        why = 'Invalid value: "": at least one of user or group must be specified'
        raise invalid(kind, "authorization.k8s.io", "", [Cause("FieldValueInvalid", why, "spec.user")])
    return User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), spec.get("extra") or {})
