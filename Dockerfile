# syntax=docker/dockerfile:1
# Two stages: the first installs the locked set into a virtual environment, the second holds nothing but Python and it.
ARG PYTHON_VERSION=3.13
FROM python:${PYTHON_VERSION}-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m venv /opt/kube-pyscheduler
WORKDIR /src
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY kube_pyscheduler kube_pyscheduler
RUN /opt/kube-pyscheduler/bin/pip install --constraint constraints.txt . \
    && /opt/kube-pyscheduler/bin/pip uninstall --yes pip \
    && /opt/kube-pyscheduler/bin/python -m compileall -q /opt/kube-pyscheduler/lib

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="kube-pyscheduler" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/kube-pyscheduler /opt/kube-pyscheduler
ENV PATH=/opt/kube-pyscheduler/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
EXPOSE 10251 10259
ENTRYPOINT ["kube-pyscheduler"]
