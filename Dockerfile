# The image of the operator and of the initializers: `docker build -t trainwright/trainwright .`
# Runs as a user without a name or a home, with a read-only root; /tmp is the only place it writes to.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/trainwright
COPY requirements/initializers.txt requirements/
RUN /opt/trainwright/bin/pip install --no-cache-dir --no-compile --require-hashes -r requirements/initializers.txt
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY manifests ./manifests
RUN /opt/trainwright/bin/pip install --no-cache-dir --no-compile --no-deps . \
    && find /opt/trainwright -name '__pycache__' -prune -exec rm -r {} + \
    && /opt/trainwright/bin/python -m compileall -q /opt/trainwright/lib

FROM python:3.11-slim
COPY --from=build /opt/trainwright /opt/trainwright
ENV PATH=/opt/trainwright/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["trainwright"]
CMD ["operator"]
