{{- /* The text of all pages, in sections: with their addresses. */ -}}
{{- $sections := slice -}}
{{- range (slice site.Home | append site.RegularPages) -}}
  {{- $page := . -}}
  {{- $title := partialCached "title.html" . .File.Filename -}}
  {{- $address := strings.TrimPrefix "/" .RelPermalink -}}
  {{- range split (.Content | replaceRE `<a class="anchor"[^>]*>#</a>` "" | replaceRE `<h[1-4] id="([^"]*)">` "\x00$1\x01") "\x00" | after 1 -}}
    {{- $parts := split . "\x01" -}}
    {{- $heading := index (split (index $parts 1) "</h") 0 | plainify | htmlUnescape | strings.TrimSpace -}}
    {{- $text := replaceRE `(?s)^.*?</h\d>` "" (index $parts 1) 1 | plainify | htmlUnescape -}}
    {{- $sections = $sections | append (dict "address" (printf "%s#%s" $address (index $parts 0)) "page" $title "heading" $heading "text" (trim (replaceRE `\s+` " " $text) " ")) -}}
  {{- end -}}
{{- end -}}
window.slipstreamSearch({{ $sections | jsonify (dict "noHTMLEscape" true) }});
