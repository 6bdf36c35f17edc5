{{- define "type" -}}
{{- $type := .type }}
{{- if markdownShouldRenderType $type }}
{{ .heading }} {{ $type.Name }}

{{ template "prose" $type.Doc }}
{{- if $type.References }}

Used in
{{- range $index, $reference := $type.SortedReferences }}{{ if $index }},{{ end }} {{ markdownRenderTypeLink $reference }}{{ end }}.
{{- end }}
{{- if and $type.Validation (not $type.EnumValues) }}

Valid:
{{- range $index, $rule := $type.Validation }}{{ if $index }},{{ end }} {{ $rule }}{{ end }}.
{{- end }}
{{- if $type.EnumValues }}

| value | description |
| --- | --- |
{{- range $type.EnumValues }}
| `{{ .Name }}` | {{ template "text" (regexReplaceAll (printf "^\\w*%s:? " .Name) .Doc "") }} |
{{- end }}
{{- end }}
{{- if $type.Members }}

| field | description | default and limits |
| --- | --- | --- |
{{- if $type.GVK }}
| `apiVersion` string | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | |
| `kind` string | `{{ $type.GVK.Kind }}` | |
{{- end }}
{{- range $type.Members }}
| `{{ .Name }}` {{ markdownRenderType .Type }} | {{ template "member" . }} | {{ template "limits" . }} |
{{- end }}
{{- end }}
{{ end }}
{{- end -}}

{{- /* A comment, which is text and not Markdown. */ -}}
{{- define "prose" -}}
{{ . | trim | replace "*" "\\*" }}
{{- end -}}

{{- define "text" -}}
{{ . | trim | replace "*" "\\*" | replace "|" "\\|" | replace "\n\n" "<br><br>" | replace "\n- " "<br>- " | replace "\n" " " }}
{{- end -}}

{{- /* The limits of a field, without those that its type lists. */ -}}
{{- define "limits" -}}
{{- $limits := list }}
{{- $ofType := .Type.Validation | default list }}
{{- with .Type.UnderlyingType }}{{ $ofType = concat $ofType (.Validation | default list) }}{{ end }}
{{- if and .Default (ne .Default "{  }") }}{{ $limits = append $limits (printf "default `%s`" .Default) }}{{ end }}
{{- range .Validation }}
{{- if hasPrefix "Required:" . }}{{ $limits = prepend $limits "required" }}
{{- else if not (or (hasPrefix "Optional:" .) (hasSuffix ": {}" .) (has . $ofType)) }}{{ $limits = append $limits . }}
{{- end }}
{{- end }}
{{- range $index, $limit := $limits }}{{ if $index }}<br>{{ end }}{{ template "rule" $limit }}{{ end }}
{{- end -}}

{{- define "rule" -}}
{{- if hasPrefix "Enum: " . }}one of{{ range $index, $value := trimPrefix "Enum: [" . | trimSuffix "]" | splitList " " }}{{ if $index }},{{ end }} `{{ $value }}`{{ end }}
{{- else }}{{ . | replace "|" "\\|" }}
{{- end }}
{{- end -}}
