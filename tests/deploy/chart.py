"""Renders the Helm chart with several values, and checks the results against the schemas of Kubernetes."""

import sys
from pathlib import Path

import helm_python
import kubernetes_validate
import yaml

CHART = Path(__file__).parents[2] / "deploy/helm/grabd"
# The versions of Kubernetes whose schemas are used: the oldest that the chart allows, and a new one.
VERSIONS = ["1.27", "1.34"]

REQUIRED = {
    "image": {"repository": "registry.example.com/grabd"},
    "publicUrl": "https://grabs.example.com",
    "database": {"secretName": "database"},
    "cluster": {"coreSecretName": "core", "rendererSecretName": "renderer"},
    "images": {"url": "s3://grabd", "endpoint": "https://s3.example.com", "secretName": "s3"},
}
EVERYTHING = REQUIRED | {
    "trustedProxies": ["10.0.0.0/8"],
    "env": {"GRABD_LIMITS__ASYNC_QUEUE": 100},
    "imagePullSecrets": [{"name": "registry"}],
    "serviceAccount": {"name": "grabd"},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "host": "grabs.example.com",
        "tlsSecretName": "tls",
        "annotations": {"a": "b"},
    },
    "networkPolicy": {
        "monitoringNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
        "except": ["203.0.113.0/24", "2001:db8::/32"],
        "objectStore": [{"to": [{"ipBlock": {"cidr": "10.0.5.7/32"}}], "ports": [{"port": 9000}]}],
    },
    "images": REQUIRED["images"] | {"caSecretName": "s3-ca", "directUpload": False},
    "bus": {"secretName": "nats"},
    "renderer": {"nodeSelector": {"pool": "browsers"}, "tolerations": [{"operator": "Exists"}], "env": {"A": 1}},
    "keda": {"enabled": True, "prometheusUrl": "http://prometheus:9090"},
}


def render(values: dict) -> list[dict]:
    files = helm_python.Chart.load(str(CHART)).render(values, name="shots", namespace="grabd")
    documents = [document for text in files.values() for document in yaml.safe_load_all(text)]
    return [document for document in documents if document]


def named(documents: list[dict], kind: str, name: str) -> dict:
    return next(d for d in documents if d["kind"] == kind and d["metadata"]["name"] == name)


def problems_of(name: str, values: dict) -> list[str]:
    problems = []
    for message in helm_python.lint(str(CHART), values, strict=True).get("messages", []):
        # An icon is not needed.
        if "icon is recommended" not in str(message):
            problems.append(f"lint: {message}")
    documents = render(values)
    for document in documents:
        if document["kind"] == "ScaledObject":
            continue  # Its schema is KEDA's.
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                problems.append(f"{document['kind']} {document['metadata']['name']} ({version}): {error.message}")

    renderer = named(documents, "Deployment", "shots-renderer")["spec"]["template"]["spec"]
    # Renderers run untrusted pages, so they must not have what cores and edges have.
    for secret in ("database", "s3", "core"):
        if f"'{secret}'" in str(renderer):
            problems.append(f"the renderer has the secret {secret}")
    egress = named(documents, "NetworkPolicy", "shots-renderer")["spec"]["egress"]
    blocks = [to["ipBlock"] for rule in egress for to in rule["to"] if "ipBlock" in to]
    public = next(block for block in blocks if block["cidr"] == "0.0.0.0/0")
    for private in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"):
        if private not in public["except"]:
            problems.append(f"renderers can reach {private}")
    private = [block["cidr"] for block in blocks if not block["cidr"].endswith(("0/0", "::/3"))]
    stores = values.get("networkPolicy", {}).get("objectStore", [])
    if private != [to["ipBlock"]["cidr"] for rule in stores for to in rule["to"]]:
        problems.append(f"renderers can reach {private}")
    roles = ("edge", "core", "renderer")
    pods = {role: named(documents, "Deployment", f"shots-{role}")["spec"]["template"]["spec"] for role in roles}
    for role, pod in pods.items():
        variables = {variable["name"] for variable in pod["containers"][0]["env"]}
        mounts = {mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        wants_ca = "caSecretName" in values["images"]
        if wants_ca != ("GRABD_IMAGES__CA_FILE" in variables) or wants_ca != ("/images-ca" in mounts):
            problems.append(f"the {role} has the certificate authorities of the store only in part")
        if ("GRABD_BUS__URL" in variables) != ("bus" in values and role != "renderer"):
            problems.append(f"the {role} has another bus than configured")
    if not named(documents, "Service", "shots-core")["spec"]["publishNotReadyAddresses"]:
        problems.append("a core would never get the renderer that it needs to become ready")
    selectors = [str(d["spec"]["selector"]) for d in documents if d["kind"] == "Deployment"]
    if len(set(selectors)) != 3:
        problems.append("roles select each other's pods")
    kinds = sorted(document["kind"] for document in documents)
    print(f"{name}: {len(documents)} objects: {', '.join(kinds)}")
    return [f"{name}: {problem}" for problem in problems]


def main() -> int:
    problems = problems_of("required values", REQUIRED) + problems_of("all values", EVERYTHING)
    try:
        render({})
        problems.append("the chart can be rendered without its required values")
    except helm_python.HelmError as error:
        if "missing" not in str(error):
            problems.append(f"without values, it does not say what is missing: {error}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
