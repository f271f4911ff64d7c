// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dashboard has the command that serves a page on which users follow catalogs, environments and changes, and run commands of the
// plugin with their own rights.
package dashboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/kube/buildversion"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const example = `  # Open the page in the browser
  kubectl slipstream dashboard

  # Show only the namespace teams, and let the page change things
  kubectl slipstream dashboard -n teams --allow-changes`

const (
	// idleTimeout is the time without a request after which the command ends. A stream is one request.
	idleTimeout = 8 * time.Hour
	// stopTimeout is how long requests may take when the command ends.
	stopTimeout = time.Second
	// headerTimeout limits how long the headers of a request take to arrive, and then its body. maxHeader limits the bytes of the headers.
	headerTimeout, maxHeader = 10 * time.Second, 32 << 10
	// idleConnection is how long a connection is kept without a request.
	idleConnection = time.Minute
)

// dashboard is the command dashboard.
type dashboard struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	plugin        Plugin
	allNamespaces bool
	port          uint16
	allowChanges  bool
	noOpen        bool
	// idle is the time without a request after which the command ends.
	idle time.Duration
}

// NewCommand returns the command. The page runs the commands of the plugin.
func NewCommand(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags, plugin Plugin) *cobra.Command {
	d := &dashboard{IOStreams: streams, config: config, plugin: plugin, idle: idleTimeout}
	command := &cobra.Command{
		Use:   "dashboard",
		Short: "Show catalogs, environments and changes on a page in the browser",
		Long: "Serve a page for this user on 127.0.0.1, and open it in the browser. It shows all namespaces, or that of -n or the context if you may\n" +
			"not list environments in all. What the page does is a command of this plugin, with your own rights. It only reads until you allow\n" +
			"changes. The link that is printed works once, within a minute; Enter prints a new one. The command ends with Ctrl-C, or after 8\n" +
			"hours without a request.",
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return d.run(command.Context(), command.Root().PersistentFlags())
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&d.allNamespaces, "all-namespaces", "A", false, "Show all namespaces, or fail if you may not list environments in them.")
	flags.Uint16Var(&d.port, "port", 0, "The port of the page. 0 is a free one.")
	flags.BoolVar(&d.allowChanges, "allow-changes", false, "Let the page change things from the beginning.")
	flags.BoolVar(&d.noOpen, "no-open", false, "Print the link, and open no browser.")
	command.AddCommand(newServe(streams, config, plugin))
	return command
}

func (d *dashboard) run(ctx context.Context, flags *pflag.FlagSet) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all background
	w, err := d.workspace(ctx, &all, flags)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(d.port))))
	if err != nil {
		return fmt.Errorf("listen for the browser: %w", err)
	}
	w.acquire() // It follows the cluster before the browser asks, and while there is no tab.
	idle := time.AfterFunc(d.idle, func() { cancel(errIdle) })
	defer idle.Stop()
	opened := &links{origin: "http://" + strings.TrimSuffix(listener.Addr().String(), ":80"), workspace: w, now: time.Now}
	link := d.link(opened)
	if !d.noOpen && cli.IsTerminal(d.Out) {
		defer openBrowser(ctx, link)()
	}
	if cli.IsTerminal(d.In) {
		_, _ = fmt.Fprintln(d.ErrOut, "Enter prints a new link, and Ctrl-C ends the page") // Nothing depends on it.
		go d.links(ctx, opened)
	}
	err = serve(ctx, (*http.Server).Serve, listener, &server{
		guard: newGuard(opened.origin), sessions: &sessions{most: maxTabs, mostOfUser: maxTabs}, logins: opened, used: func() { idle.Reset(d.idle) },
	})
	cancel(err)
	all.wait()
	switch {
	case errors.Is(err, errIdle):
		_, _ = fmt.Fprintln(d.ErrOut, errIdle.Error()) // Nothing depends on it.
		return nil
	case errors.Is(err, context.Canceled):
		return nil // The user has ended it.
	}
	return err
}

var errIdle = errors.New("there was no request for 8 hours, so the page has ended")

// workspace returns what all tabs show. What follows the cluster runs in all, and ends with ctx.
func (d *dashboard) workspace(ctx context.Context, all *background, flags *pflag.FlagSet) (*workspace, error) {
	cluster, err := connect(d.config)
	if err != nil {
		return nil, err
	}
	namespace, note, err := d.namespace(ctx, cluster)
	if err != nil {
		return nil, err
	}
	runs := newRuns(d.plugin, flags, cluster)
	w := newWorkspace(cluster, runs, following(ctx, all, cluster, namespace))
	w.allow.Store(d.allowChanges)
	w.hello = hello{
		Type: "hello", User: cluster.user(ctx), Context: cluster.context, Namespace: namespace, Note: note, Version: buildversion.Version(),
		Flags: runs.flags(),
	}
	return w, nil
}

// namespace returns the namespace that is shown, empty for all, and why it is only this one.
func (d *dashboard) namespace(ctx context.Context, cluster *cluster) (namespace, note string, err error) {
	if d.config.Namespace != nil && *d.config.Namespace != "" && !d.allNamespaces {
		return *d.config.Namespace, "", nil
	}
	_, err = cluster.tables.Page(ctx, cli.Selection{Resource: ofEnvironments}, 1, "")
	if !apierrors.IsForbidden(err) || d.allNamespaces {
		return "", "", err
	}
	if namespace, _, err = d.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return "", "", err
	}
	return namespace, "You may not list environments in all namespaces, so this page shows only the namespace " + namespace +
		". Start it with -n NAMESPACE for another one", nil
}

// newRuns returns what runs commands with the cluster and the user of flags. The context is fixed, so that commands do not follow another
// kubectl config use-context. If there are several, the page shows it, so that commands that a user copies do not either.
func newRuns(plugin Plugin, flags *pflag.FlagSet, cluster *cluster) *runs {
	r := &runs{plugin: plugin, config: cluster.rest, timeout: runTimeout}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed || flag.Name == "namespace" {
			return
		}
		values := []string{flag.Value.String()}
		if several, ok := flag.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			r.connection = append(r.connection, "--"+flag.Name+"="+value)
			switch {
			case slices.Contains(namingFlags, flag.Name):
				r.shown = append(r.shown, "--"+flag.Name+"="+value)
			case slices.Contains(hiddenFlags, flag.Name):
				r.shown = append(r.shown, "--"+flag.Name+"="+strings.ToUpper(flag.Name))
			}
		}
	})
	if context := "--context=" + cluster.context; cluster.context != "" && !slices.Contains(r.connection, context) {
		r.connection = append(r.connection, context)
		if cluster.contexts > 1 {
			r.shown = append(r.shown, context)
		}
	}
	return r
}

// namingFlags choose the cluster and the user by names, so the page shows them in commands. hiddenFlags choose them by what the page must
// not know. They are shown without their values: without them, a command that a user copies would go to another cluster.
var (
	namingFlags = []string{"context", "cluster", "user", "as", "as-group", "as-uid", "as-user-extra"}
	hiddenFlags = []string{"kubeconfig", "server", "token"}
)

// link prints a new link, and returns it.
func (d *dashboard) link(of *links) string {
	link := of.origin + "/#" + of.newCode()
	_, _ = fmt.Fprintln(d.Out, printable.Line(link)) // Without it, the user presses Enter again.
	return link
}

// links prints a new link for each line that the user enters.
func (d *dashboard) links(ctx context.Context, of *links) {
	for lines := bufio.NewReader(d.In); ctx.Err() == nil; {
		if _, err := lines.ReadString('\n'); err != nil {
			return
		}
		d.link(of)
	}
}

// serve serves the page with a method of http.Server until ctx ends.
func serve(ctx context.Context, with func(*http.Server, net.Listener) error, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, MaxHeaderBytes: maxHeader, DisableGeneralOptionsHandler: true,
		WriteTimeout: writeTimeout, IdleTimeout: idleConnection,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if server.Shutdown(ending) != nil {
			_ = server.Close() // Nothing is left to do.
		}
	})
	if err := with(server, listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	<-stopped
	return context.Cause(ctx)
}
