{{- define "synchub-tunnel.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "synchub-tunnel.fullname" -}}
{{- $name := include "synchub-tunnel.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "synchub-tunnel.selectorLabels" -}}
app.kubernetes.io/name: {{ include "synchub-tunnel.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "synchub-tunnel.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "synchub-tunnel.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The annotations of an object: commonAnnotations, and those in "more", which win. It takes a dict with "root" and "more". */ -}}
{{- define "synchub-tunnel.annotations" -}}
{{- with merge dict (.more | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The name of the objects of the cluster. `kubectl synchub register --tunnel` prints it without the name of a release. */ -}}
{{- define "synchub-tunnel.clusterName" -}}
{{- $name := include "synchub-tunnel.fullname" . }}
{{- if eq $name .Chart.Name }}
{{- printf "synchub:tunnel:%s" .Release.Namespace }}
{{- else }}
{{- printf "synchub:tunnel:%s:%s" .Release.Namespace $name }}
{{- end }}
{{- end }}

{{- define "synchub-tunnel.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- $image := list $registry .Values.image.repository | compact | join "/" }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $image .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $image (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}
