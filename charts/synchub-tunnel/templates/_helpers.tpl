{{- define "synchub-tunnel.selectorLabels" -}}
app.kubernetes.io/name: synchub-tunnel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "synchub-tunnel.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "synchub-tunnel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "synchub-tunnel.clusterName" -}}
synchub:tunnel:{{ .Release.Namespace }}
{{- end }}

{{- define "synchub-tunnel.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}
