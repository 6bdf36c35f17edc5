{{- /* The sections of all pages, for search in the browser. */ -}}
{{- $entries := slice -}}
{{- range site.Pages -}}
  {{- $page := . -}}
  {{- $title := partial "title.html" . -}}
  {{- $parts := split (replaceRE `(?s)<h[23] id="([^"]+)">(.*?)<a class="anchor".*?</h[23]>` "␞$1␞$2␞" .Content) "␞" -}}
  {{- range $i, $text := $parts -}}
    {{- if modBool $i 3 -}}
      {{- $anchor := cond (eq $i 0) "" (printf "#%v" (index $parts (sub $i 2))) -}}
      {{- $section := cond (eq $i 0) "" (index $parts (sub $i 1) | plainify | htmlUnescape) -}}
      {{- $entries = $entries | append (dict "url" (printf "%s%s" (strings.TrimPrefix "/" $page.RelPermalink) $anchor) "page" $title "section" $section "text" ($text | plainify | htmlUnescape | replaceRE `\s+` " ")) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
window.searchIndex = {{ $entries | jsonify }};
