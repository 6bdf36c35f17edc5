{{- define "member" -}}
{{- if eq .Name "metadata" -}}
name, labels and annotations, as in every object
{{- else -}}
{{ template "text" .Doc }}
{{- end -}}
{{- end -}}
