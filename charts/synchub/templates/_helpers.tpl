{{- define "synchub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "synchub.fullname" -}}
{{- $name := include "synchub.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "synchub.selectorLabels" -}}
app.kubernetes.io/name: {{ include "synchub.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "synchub.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "synchub.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* The annotations of an object: commonAnnotations, and those in "more", which win. It takes a dict with "root" and "more". */ -}}
{{- define "synchub.annotations" -}}
{{- with merge dict (.more | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Annotations that make Helm, Argo CD and Flux keep an object that is no longer in the release. */ -}}
{{- define "synchub.keep" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false
kustomize.toolkit.fluxcd.io/prune: disabled
{{- end }}

{{- define "synchub.imagePullSecrets" -}}
{{- with concat (.Values.global.imagePullSecrets | default list) .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "synchub.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "synchub.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is required when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "synchub.image" -}}
{{- $registry := default .Values.image.registry .Values.global.imageRegistry }}
{{- $image := list $registry .Values.image.repository | compact | join "/" }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" $image .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" $image (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "synchub.kubeconfigSecretName" -}}
{{- with .Values.kcp.kubeconfigSecret.name }}
{{- . }}
{{- else }}
{{- fail "\n\nThe hub needs a kubeconfig for kcp. Put it in a Secret and name that:\n\n  kubectl create secret generic synchub-kcp --namespace YOUR_NAMESPACE --from-file=kubeconfig=PATH\n  helm ... --set kcp.kubeconfigSecret.name=synchub-kcp\n" }}
{{- end }}
{{- end }}
