{{- define "gvDetails" -}}
# {{ .GroupVersionString }}

{{ template "introduction" . }}

`make generate` makes this page from the types in `apis/`.

| kind | |
| --- | --- |
{{- range .SortedKinds }}
| {{ $.TypeForKind . | markdownRenderTypeLink }} | {{ template "sentence" ($.TypeForKind .).Doc }} |
{{- end }}

{{- range .SortedKinds }}
{{ template "type" (dict "type" ($.TypeForKind .) "heading" "##") }}
{{- end }}

## Types
{{ range .SortedTypes }}
{{- if not .GVK }}
{{- template "type" (dict "type" . "heading" "###") }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "introduction" -}}
{{- if eq .Group "synchub.dev" -}}
The kind that the operators of a hub write in the hosting cluster. [PublishedResource](../publishedresource.md) explains it, with examples.
{{- else -}}
The kinds of inventory workspaces, mailboxes and workload workspaces. They are field-compatible with KubeStellar 0.14.
[Registering clusters](../registration.md), [SyncerConfig](../syncerconfig.md) and [Placing workloads](../placement.md) explain them, with
examples.
{{- end -}}
{{- end -}}

{{- /* The first sentence of a comment. */ -}}
{{- define "sentence" -}}
{{ regexReplaceAll "(?s)\\. .*$" (. | replace "\n" " ") "." }}
{{- end -}}
