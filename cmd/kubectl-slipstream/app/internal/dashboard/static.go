// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"embed"
	"net/http"
)

// built are the files of the page.
//
//go:embed web/dist/index.html web/dist/app.js web/dist/app.css web/dist/favicon.svg
var built embed.FS

// staticFile is a file of the page.
type staticFile struct{ name, contentType string }

// staticFiles are the files by path. There are no others.
var staticFiles = map[string]staticFile{
	"/":            {"index.html", "text/html; charset=utf-8"},
	"/app.js":      {"app.js", "text/javascript; charset=utf-8"},
	"/app.css":     {"app.css", "text/css; charset=utf-8"},
	"/favicon.svg": {"favicon.svg", "image/svg+xml"},
}

// serve writes the file.
func (f staticFile) serve(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &refusal{http.StatusMethodNotAllowed, "A file can only be read", ""}
	}
	content, err := built.ReadFile("web/dist/" + f.name)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", f.contentType)
	_, err = w.Write(content)
	return err
}
