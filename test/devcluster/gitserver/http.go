// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"net/http"
	"net/http/cgi"
	"os/exec"
	"strings"

	"k8s.io/klog/v2"
)

// pushAdvertisement is the suffix of the path of a push's first request.
const pushAdvertisement = "/info/refs"

// Handler returns the smart HTTP protocol for the repositories, without authentication or authorization.
func (r *Repositories) Handler() (http.Handler, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	return &handler{repositories: r, git: git}, nil
}

// handler passes each request to `git http-backend`.
type handler struct {
	repositories *Repositories
	git          string
}

var _ http.Handler = &handler{}

func (h *handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	name, beginsPush := strings.CutSuffix(request.URL.Path, pushAdvertisement)
	if beginsPush && request.URL.Query().Get("service") == receivePack {
		if err := h.repositories.Ensure(request.Context(), strings.TrimPrefix(name, "/")); err != nil {
			klog.FromContext(request.Context()).Error(err, "Refused a push", "path", name)
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
	}
	backend := cgi.Handler{
		Path: h.git,
		Args: []string{"http-backend"},
		Env: []string{
			"GIT_PROJECT_ROOT=" + h.repositories.root,
			"GIT_HTTP_EXPORT_ALL=1",
			"GIT_PROTOCOL=" + request.Header.Get("Git-Protocol"),
		},
	}
	backend.ServeHTTP(w, withoutLength(request))
}

// withoutLength returns the request without the length of its body. If a client disconnects
// during a push, http-backend would wait for the remaining bytes forever, in a busy loop;
// without a length it stops at the end of the body. Package cgi rejects chunked bodies, which
// large pushes have.
func withoutLength(request *http.Request) *http.Request {
	plain := request.Clone(request.Context())
	plain.TransferEncoding = nil
	if plain.ContentLength > 0 {
		plain.ContentLength = -1
		plain.Header.Del("Content-Length")
	}
	return plain
}
