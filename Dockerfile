# The service alone: no compiler, no package manager of its own, no tests. The mapping and
# the settings come at run time; docs/run/containers.md shows how.

# Any image with Python 3.11 or later and its venv module; both stages need the same.
ARG BASE=python:3.12-slim

FROM ${BASE} AS build
# Which hospital systems: postgresql, mysql, oracle, sqlserver; SQLite and HTTP need none.
# And tracing, for who sets ENCOUNTERS_TRACING.
ARG EXTRAS=postgresql,mysql
WORKDIR /build
RUN python3 -m venv /opt/encounters
COPY requirements-image.lock ./
# Every hash is checked here; what is installed below comes from these files alone.
RUN /opt/encounters/bin/pip download --no-cache-dir --only-binary :all: --require-hashes \
      --requirement requirements-image.lock --dest wheels \
 && /opt/encounters/bin/pip install --no-index --find-links wheels --upgrade setuptools
COPY setup.cfg pyproject.toml README.md LICENSE wsgi.py ./
COPY app app
COPY adapters adapters
COPY toolkit toolkit
COPY explorer explorer
COPY demo demo
COPY mappings mappings
RUN /opt/encounters/bin/pip install --no-index --find-links wheels --no-build-isolation \
      ".[${EXTRAS}]" \
 && /opt/encounters/bin/pip uninstall --yes setuptools pip

FROM ${BASE}
COPY --from=build /opt/encounters /opt/encounters
ENV PATH=/opt/encounters/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ENCOUNTERS_BIND=0.0.0.0:8000 \
    ENCOUNTERS_OPERATIONS_BIND=0.0.0.0:9000 \
    ENCOUNTERS_MAPPING=/etc/encounters/hospital.yaml
# Where the mapping is mounted, with what it extends; where a volume for audit events fits.
RUN install -d /etc/encounters \
 && install -d -o 10001 -g 10001 /var/log/encounters
# A number, so that Kubernetes can see that it is not root; no account is needed for it.
USER 10001:10001
WORKDIR /etc/encounters
# For clients, and for probes and Prometheus.
EXPOSE 8000 9000
# Python alone: the service's own modules would take half a second of a core each time.
HEALTHCHECK --interval=20s --timeout=10s --start-period=60s --retries=3 \
  CMD ["python3", "-IS", "-c", "import http.client as h, os; c = h.HTTPConnection('127.0.0.1', \
int(os.environ['ENCOUNTERS_OPERATIONS_BIND'].rpartition(':')[2]), timeout=9); \
c.request('GET', '/live'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["encounters"]
CMD ["serve"]
