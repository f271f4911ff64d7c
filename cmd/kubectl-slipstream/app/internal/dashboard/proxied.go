// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
)

const (
	// maxOfUser is the number of tabs of one user.
	maxOfUser = 8
	// hostedStream is how long a stream lasts until the page opens it again, so that the proxy checks its user again.
	hostedStream = 10 * time.Minute
	// hostedStreams is the number of streams of a session. A tab has one, and another one for a moment while it is loaded again.
	hostedStreams = 2
	// noFolder is a folder that cannot exist: what discovery returns to one user is not kept for others.
	noFolder = os.DevNull + "/none"
	// userQPS and userBurst are the requests a second of one session to the API server, as those of kubectl.
	userQPS, userBurst = 50, 300
)

// proxied are the logins of a page behind a proxy that authenticates its users. Each session has a workspace with the rights of its user.
type proxied struct {
	// origin is the address of the page.
	origin string
	// logoutURL is where the browser goes after a user has logged out, empty if it stays.
	logoutURL string
	plugin    Plugin
	users     users
	// paths are those of files, which no message to the page contains.
	paths []string
	// follow returns what follows a namespace of a cluster, or all of it.
	follow func(of *cluster, namespace string) func(*hub) (stop func())
}

// open implements logins.
func (p *proxied) open(r *http.Request, request *sessionRequest) (*login, error) {
	if request.Code != "" {
		return nil, &refusal{http.StatusBadRequest, "This page has no links with a code", "Open it at its own address"}
	}
	if request.Namespace != "" {
		if err := checkName("namespace", request.Namespace); err != nil {
			return nil, err
		}
	}
	found, err := p.users.identify(r)
	if err != nil {
		return nil, p.explain(r, err)
	}
	w, err := p.workspace(r, found, request.Namespace)
	if err != nil {
		return nil, p.explain(r, err)
	}
	return &login{workspace: w, identity: found}, nil
}

// explain returns what a user sees of an error before there is a session.
func (p *proxied) explain(r *http.Request, err error) error {
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return err
	}
	klog.FromContext(r.Context()).Error(err, "The page cannot be opened")
	return &refusal{http.StatusBadGateway, "The API server does not say who you are", "Try again, or ask who runs this page to look at its log"}
}

// workspace returns what a user sees and does.
func (p *proxied) workspace(r *http.Request, of *identity, namespace string) (*workspace, error) {
	of.config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(userQPS, userBurst) // All clients of the session share it.
	config := fixed(of.config)
	found, err := newCluster(config)
	if err != nil {
		return nil, err
	}
	_, host, _ := strings.Cut(p.origin, "://")
	found.context, found.hidden = host, hide(of.config.Host, p.paths)
	if namespace == "" {
		_, err := found.tables.Page(r.Context(), cli.Selection{Resource: ofEnvironments}, 1, "")
		if apierrors.IsForbidden(err) {
			return nil, &question{
				&refusal{http.StatusForbidden, "You may not list environments in all namespaces", "Choose the namespace to show"}, askNamespace,
			}
		}
		if err != nil {
			return nil, found.refusal(r.Context(), err)
		}
	}
	w := newWorkspace(found, &runs{
		plugin: p.plugin, config: of.config, timeout: runTimeout,
		connection: []string{"--server=" + of.config.Host, "--kubeconfig=" + os.DevNull, "--cache-dir=" + noFolder},
	}, p.follow(found, namespace))
	w.streamLife, w.maxStreams = hostedStream, hostedStreams
	w.hello = hello{
		Type: "hello", User: of.name, Context: host, Namespace: namespace, Version: buildversion.Version(), Hosted: true, LogoutURL: p.logoutURL,
	}
	return w, nil
}

// fixed returns a configuration as commands take it, whatever kubeconfigs there are.
func fixed(of *rest.Config) *genericclioptions.ConfigFlags {
	host, none, cache := of.Host, os.DevNull, noFolder
	config := genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(*rest.Config) *rest.Config { return rest.CopyConfig(of) })
	config.APIServer, config.KubeConfig, config.CacheDir = &host, &none, &cache
	return config
}

// check implements logins.
func (p *proxied) check(r *http.Request, of *session) error {
	isSame, err := p.users.isOf(r, of.identity)
	if err != nil {
		return p.explain(r, err)
	}
	if !isSame {
		return &question{&refusal{http.StatusUnauthorized, "This page was opened by another user, or your groups have changed", "Reload the page"}, askReload}
	}
	return nil
}

// ended implements logins.
func (p *proxied) ended() error { return noUser("The login of this page has ended") }
