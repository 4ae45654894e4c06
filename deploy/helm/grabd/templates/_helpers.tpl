{{/* Labels of everything, and those that select the pods of a role. Takes (list $ "role"). */}}
{{- define "grabd.selector" -}}
app.kubernetes.io/name: grabd
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "grabd.labels" -}}
{{ include "grabd.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: grabd-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "grabd.name" -}}
{{ (index . 0).Release.Name }}-{{ index . 1 }}
{{- end }}

{{- define "grabd.image" -}}
{{ required "image.repository is missing: where the image of script/image was pushed" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The pods' security: any user but root, no capabilities, a read-only root. */}}
{{- define "grabd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "grabd.podSecurity" -}}
runAsNonRoot: true
runAsUser: 4711
runAsGroup: 4711
fsGroup: 4711
{{- end }}

{{/* A pod is ready when its role has what it needs, and alive while it responds. */}}
{{- define "grabd.probes" -}}
startupProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /healthz, port: http }
  periodSeconds: 10
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: http }
  periodSeconds: 5
  timeoutSeconds: 5
{{- end }}

{{/* Pods of a role on different machines, where possible. */}}
{{- define "grabd.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "grabd.selector" . | nindent 8 }}
{{- end }}

{{/* Variables of cores and edges. */}}
{{- define "grabd.sharedEnv" -}}
- name: GRABD_CLUSTER__ENABLED
  value: "true"
- name: GRABD_DATABASE__URL
  valueFrom:
    secretKeyRef:
      name: {{ required "database.secretName is missing" .Values.database.secretName }}
      key: {{ .Values.database.secretKey }}
- name: GRABD_SECRETS__KEY_FILE
  value: /cluster/secrets.key
- name: GRABD_HTTP__PUBLIC_URL
  value: {{ required "publicUrl is missing" .Values.publicUrl | quote }}
- name: GRABD_HTTP__TRUSTED_PROXIES
  value: {{ join "," .Values.trustedProxies | quote }}
- name: GRABD_IMAGES__URL
  value: {{ required "images.url is missing" .Values.images.url | quote }}
- name: GRABD_IMAGES__ENDPOINT
  value: {{ .Values.images.endpoint | quote }}
- name: GRABD_IMAGES__REGION
  value: {{ .Values.images.region | quote }}
{{- with .Values.images.secretName }}
- name: GRABD_IMAGES__ACCESS_KEY_ID
  valueFrom:
    secretKeyRef: { name: {{ . }}, key: {{ $.Values.images.accessKeyIdKey }} }
- name: GRABD_IMAGES__SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef: { name: {{ . }}, key: {{ $.Values.images.secretAccessKeyKey }} }
{{- end }}
- name: GRABD_IMAGES__DIRECT_UPLOAD
  value: {{ .Values.images.directUpload | quote }}
{{- if .Values.bus.secretName }}
- name: GRABD_BUS__URL
  valueFrom:
    secretKeyRef: { name: {{ .Values.bus.secretName }}, key: {{ .Values.bus.secretKey }} }
{{- else if .Values.bus.url }}
- name: GRABD_BUS__URL
  value: {{ .Values.bus.url | quote }}
{{- end }}
{{ include "grabd.imagesCaEnv" . }}
{{ include "grabd.listenEnv" . }}
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "grabd.listenEnv" -}}
- name: GRABD_HTTP__LISTEN
  value: 0.0.0.0:8080
- name: GRABD_METRICS__LISTEN
  value: 0.0.0.0:9464
- name: GRABD_LOG__FORMAT
  value: json
{{- end }}

{{/* The certificate authorities of the object store, which all roles need if there are some. */}}
{{- define "grabd.imagesCaEnv" -}}
{{- if .Values.images.caSecretName }}
- name: GRABD_IMAGES__CA_FILE
  value: /images-ca/ca.pem
{{- end }}
{{- end }}

{{- define "grabd.imagesCaVolume" -}}
{{- with .Values.images.caSecretName }}
- name: images-ca
  secret: { secretName: {{ . }}, defaultMode: 0444 }
{{- end }}
{{- end }}

{{- define "grabd.imagesCaMount" -}}
{{- if .Values.images.caSecretName }}
- name: images-ca
  mountPath: /images-ca
  readOnly: true
{{- end }}
{{- end }}

{{/* Directories that a process writes: uploads in progress, and profiles of browsers. */}}
{{- define "grabd.scratchVolumes" -}}
- name: data
  emptyDir: {}
- name: tmp
  emptyDir: {}
{{- end }}

{{- define "grabd.scratchMounts" -}}
- name: data
  mountPath: /data
- name: tmp
  mountPath: /tmp
{{- end }}
