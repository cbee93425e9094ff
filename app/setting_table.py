"""Every setting, as one table: name, kind, default, and the operators' sentence."""

from app import setting_kinds as kinds
from app.setting_choices import AuditFailure, AuditPatients, LogLevel, PlainHttp
from app.setting_kinds import Setting
from app.setting_readers import AUDIT_OFF

DEFAULT_SCOPES = (
    "PATIENT_GAM_SEARCH=ORGANIZATION_READ PATIENT_READ PATIENT_SEARCH "
    "ENCOUNTER_READ ENCOUNTER_SEARCH"
)


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "base_url",
        kinds.base_url(),
        "The public address of the service, which every link starts with.",
        required=True,
    ),
    Setting(
        "issuer",
        kinds.word(),
        "The `iss` that access tokens must carry.",
        required=True,
    ),
    Setting(
        "audience",
        kinds.word(),
        "The `aud` that access tokens must carry, alone or in a list.",
        required=True,
    ),
    Setting(
        "key_set_url",
        kinds.outward_url(),
        "Where the provider publishes its keys (JWKS); needed unless tokens are "
        "introspected.",
    ),
    Setting(
        "key_set_seconds",
        kinds.whole(10, 86400),
        "How long a key set is fresh; then it is fetched anew in the background.",
        default="300",
    ),
    Setting(
        "key_set_retry_seconds",
        kinds.whole(1, 300),
        "The shortest pause between two fetches of the key set for tokens that name a key "
        "it does not hold, and after one that failed.",
        default="10",
    ),
    Setting(
        "introspection_url",
        kinds.outward_url(),
        "Where opaque tokens are introspected (RFC 7662).",
    ),
    Setting(
        "introspection_client_id",
        kinds.word(),
        "Our name at the introspection endpoint; needed with its URL.",
    ),
    Setting(
        "introspection_client_secret",
        kinds.word(),
        "Our secret at the introspection endpoint; needed with its URL.",
        secret=True,
    ),
    Setting(
        "identity_timeout_seconds",
        kinds.decimal(0.1, 30),
        "How long the identity provider may take to answer.",
        default="2",
    ),
    Setting(
        "leeway_seconds",
        kinds.whole(0, 300),
        "How far the provider's clock may be off ours.",
        default="30",
    ),
    Setting(
        "scopes",
        kinds.scope_table(),
        "Which technical scopes a functional scope grants.",
        default=DEFAULT_SCOPES,
    ),
    Setting(
        "open_metadata",
        kinds.flag(),
        "Whether `/metadata` is answered without a token.",
        default="true",
    ),
    Setting(
        "mapping",
        kinds.text_file(),
        "The mapping file of the hospital system.",
        required=True,
    ),
    Setting(
        "redis_url",
        kinds.redis_url(),
        "Where searches are kept for paging.",
        required=True,
        secret=True,
    ),
    Setting(
        "seal_keys",
        kinds.seal_keys(),
        "What seals kept searches: the first key seals, all of them open.",
        required=True,
        secret=True,
    ),
    Setting(
        "page_idle_minutes",
        kinds.whole(1, 1440),
        "How long a page is kept after its last use.",
        default="30",
    ),
    Setting(
        "page_life_minutes",
        kinds.whole(1, 1440),
        "How long a page is kept at most.",
        default="480",
    ),
    Setting(
        "max_body_bytes",
        kinds.whole(1024, 1048576),
        "The longest request body that is read.",
        default="65536",
    ),
    Setting(
        "request_seconds",
        kinds.whole(1, 300),
        "How long a request may take to arrive, from its first byte to its last, and an "
        "answer to be taken.",
        default="10",
    ),
    Setting(
        "audit",
        kinds.audit_target(),
        "Where one AuditEvent a request is written.",
        default=AUDIT_OFF,
    ),
    Setting(
        "audit_key",
        kinds.digest_key(),
        "What the digests in audit events are made with; needed for them.",
        secret=True,
    ),
    Setting(
        "audit_patients",
        kinds.one_of(AuditPatients),
        "How audit events name the patients of an answer.",
        default=AuditPatients.DIGEST.value,
    ),
    Setting(
        "audit_failure",
        kinds.one_of(AuditFailure),
        "Whether an answer without its event is refused (503), or given and counted.",
        default=AuditFailure.REFUSE.value,
    ),
    Setting(
        "audit_addresses",
        kinds.flag(),
        "Whether audit events name the network address that a request came from.",
        default="true",
    ),
    Setting(
        "client_requests_per_minute",
        kinds.whole_or_off(1, 100_000_000),
        "How many requests a minute are answered to one client.",
        default="60000",
    ),
    Setting(
        "address_requests_per_minute",
        kinds.whole_or_off(1, 100_000_000),
        "How many requests a minute one address may make without a token that is known "
        "to be good.",
        default="6000",
    ),
    Setting(
        "plain_http",
        kinds.one_of(PlainHttp),
        "Whether requests without HTTPS are refused, or taken from this machine itself.",
        default=PlainHttp.REFUSE.value,
    ),
    Setting(
        "trusted_proxies",
        kinds.networks(),
        "Proxies whose `X-Forwarded-Proto` and `X-Forwarded-For` are believed.",
        default="",
    ),
    Setting(
        "bind",
        kinds.listen(),
        "Where the service listens.",
        default="127.0.0.1:8000",
    ),
    Setting(
        "operations_bind",
        kinds.listen(),
        "Where `/live`, `/ready` and `/metrics` are answered; nowhere if it is not given.",
    ),
    Setting(
        "watch_seconds",
        kinds.whole(5, 3600),
        "How often all that `/ready` tells of is looked at.",
        default="60",
    ),
    Setting(
        "workers",
        kinds.whole(1, 64),
        "How many processes answer requests.",
        default="2",
    ),
    Setting(
        "threads",
        kinds.whole(1, 128),
        "How many threads answer requests in each process; more than a source has connections.",
        default="16",
    ),
    Setting(
        "log_level",
        kinds.one_of(LogLevel),
        "From which level up log lines are written.",
        default=LogLevel.INFO.value,
    ),
    Setting(
        "tracing",
        kinds.flag(),
        "Whether spans of requests are sent (OpenTelemetry); needs the extra `tracing`.",
        default="false",
    ),
)
