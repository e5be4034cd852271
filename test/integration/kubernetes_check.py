"""Reads manifests of Kubernetes. Says what in them does not fit together; without a fault, prints
each command as a line: MANIFEST CONTAINER ROLE COMMAND, quoted for a shell, in base64."""
import base64
import os
import shlex
import sys

import yaml

secrets = {}
faults = []


def pod_of(manifest):
    """The pod's part of a workload, with the labels that its selector must match."""
    spec = manifest["spec"]
    if manifest["kind"] == "CronJob":
        return spec["jobTemplate"]["spec"]["template"]["spec"]
    if manifest["kind"] == "Deployment":
        labels = spec["template"]["metadata"]["labels"]
        if not spec["selector"]["matchLabels"].items() <= labels.items():
            faults.append("the selector does not match the pods")
        return spec["template"]["spec"]
    raise ValueError(f"unknown kind {manifest['kind']}")


def check_secret(name, volume, pod):
    secret = volume["secret"]
    mode = secret["defaultMode"]
    if secret["secretName"] not in secrets:
        faults.append(f"no Secret {secret['secretName']}")
    if mode & 0o007:
        faults.append(f"{name}: all may read it")
    if not mode & 0o040 or "fsGroup" not in pod["securityContext"]:
        faults.append(f"{name}: the container may not read it")


def check_container(container, volumes):
    mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
    for name in mounts:
        if name not in volumes:
            faults.append(f"no volume {name}")
    for variable in container.get("env", []):
        folder, key = os.path.split(variable["value"])
        sources = [volumes[name] for name, path in mounts.items() if path == folder and name in volumes]
        if variable["name"] != "REDLOCK_NODES_FILE":
            faults.append(f"unknown variable {variable['name']}")
        elif not any(key in secrets.get(v.get("secret", {}).get("secretName"), {}) for v in sources):
            faults.append(f"no Secret has {variable['value']}")


def commands(container):
    yield "command", container["command"]
    for role in ("readinessProbe", "livenessProbe"):
        if role in container:
            # A node that is away takes a second.
            if container[role].get("timeoutSeconds", 1) < 3:
                faults.append(f"{role}: too short a timeout")
            yield role, container[role]["exec"]["command"]


lines = []
manifests = []


def add(name, part, role, text):
    lines.append(f"{name} {part} {role} {base64.b64encode(text.encode()).decode()}")



for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        manifest = yaml.safe_load(file)
    if manifest["kind"] == "Secret":
        secrets[manifest["metadata"]["name"]] = manifest["stringData"]
    else:
        manifests.append(manifest)
for manifest in manifests:
    pod = pod_of(manifest)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for name, volume in volumes.items():
        if "secret" in volume:
            check_secret(name, volume, pod)
    for container in pod["containers"]:
        check_container(container, volumes)
        for role, words in commands(container):
            assert all(isinstance(word, str) for word in words), f"a word of {words} is no string"
            add(manifest["metadata"]["name"], container["name"], role, shlex.join(words))
for name, text in secrets.items():
    for key, value in text.items():
        add(name, key, "secret", value)
print("\n".join(faults or lines))
sys.exit(bool(faults))
