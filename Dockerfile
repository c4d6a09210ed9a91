# The image of the operator and of the initializers: `docker build -t trainwright/trainwright .`
# Runs as a user without a name or a home, with a read-only root; /tmp is the only place it writes to.
# Everything that is installed is pinned with hashes. Pin the base as well: --build-arg PYTHON=python:3.11-slim@sha256:...
ARG PYTHON=python:3.11-slim
FROM ${PYTHON} AS build
WORKDIR /src
COPY requirements/build.txt requirements/initializers.txt requirements/
RUN python -m venv /opt/build && python -m venv /opt/trainwright \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && /opt/trainwright/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements/initializers.txt
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY manifests ./manifests
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/trainwright/bin/pip install --no-cache-dir --no-compile --no-deps --no-index /dist/*.whl \
    && find /opt/trainwright -name '__pycache__' -prune -exec rm -r {} + \
    && /opt/trainwright/bin/python -m compileall -q /opt/trainwright/lib

FROM ${PYTHON}
COPY --from=build /opt/trainwright /opt/trainwright
ENV PATH=/opt/trainwright/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["trainwright"]
CMD ["operator"]
