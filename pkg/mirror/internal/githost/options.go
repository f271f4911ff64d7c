// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/utils/clock"
)

// Options are what a Host needs.
type Options struct {
	Kind Kind
	// RepoURL is the URL of the Git repository, as Git accepts it: https://host/path, ssh://user@host/path or user@host:path.
	RepoURL string
	// APIURL is where the API begins. If it is empty, it is derived from RepoURL. A host below a path, such as
	// https://host/git/owner/name, needs it.
	APIURL string
	// Client makes the requests. Its transport decides which addresses are allowed, on the proxy and on the authorities. Its redirect
	// policy and its cookies are not used.
	Client *http.Client
	// Token returns the credential. It is called before each request and may be called concurrently. refused is the value of one that the
	// host has refused, or empty: if the credential is another one then, the request is repeated with it.
	Token func(ctx context.Context, refused string) (Token, error)
	// Clock is the time with which limits of the host end. The default is the real one.
	Clock clock.PassiveClock
}

// Token is a credential of a host.
type Token struct {
	Value string
	// Basic sends Value as the password of HTTP basic authentication. Personal access tokens of Azure DevOps and passwords of Gitea need
	// it; GitHub and GitLab ignore it.
	Basic bool
	// Username is sent with Basic. It is empty for Azure DevOps.
	Username string
}

// New returns the Host of a repository. It makes no request.
func New(o Options) (Host, error) {
	if o.Client == nil || o.Token == nil {
		return nil, errors.New("githost: Client and Token are required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	address, err := locate(o.Kind, o.RepoURL, o.APIURL)
	if err != nil {
		return nil, err
	}
	c := newClient(o, address.api)
	path := strings.Join(address.path, "/")
	h := &host{address: fmt.Sprintf("%s %s %s", o.Kind, address.api, path)}
	switch o.Kind {
	case GitHub:
		h.api = &github{client: c, owner: address.path[0], name: address.path[1]}
	case GitLab:
		h.api = &gitlab{client: c, project: path}
	case Gitea:
		h.api = &gitea{client: c, owner: address.path[0], name: address.path[1]}
	default:
		h.api = &azure{client: c, project: address.path[0], name: address.path[1]}
	}
	return h, nil
}

// location is where a repository is.
type location struct {
	api *url.URL
	// path is the path of the project at GitLab, project and name at Azure DevOps, and owner and name elsewhere.
	path []string
}
