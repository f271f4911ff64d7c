// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// maxRuns is the number of commands that run at once for a tab, and runTimeout how long one may run.
	maxRuns, runTimeout = 4, 10 * time.Minute
	// maxLine is the number of bytes after which a line of output is broken.
	maxLine = 64 << 10
)

// Plugin returns the plugin for one run, with the cluster and the user of a configuration.
type Plugin func(genericiooptions.IOStreams, *rest.Config) *cobra.Command

// runs runs commands of the plugin in this process.
type runs struct {
	plugin Plugin
	// config has the cluster and the user of the start: commands do not follow changes of kubeconfigs, as the rest of the page does not.
	config *rest.Config
	// connection are the flags that set the cluster and the user.
	connection []string
	// shown are those of them that the page may know.
	shown []string
	// timeout is runTimeout, and shorter in tests.
	timeout time.Duration
}

// flags returns the flags of the connection that the page may know, as a user writes them.
func (r *runs) flags() string {
	words := make([]string, len(r.shown))
	for i, flag := range r.shown {
		words[i] = cli.Quoted(flag)
	}
	return strings.Join(words, " ")
}

// runRequest is the request to run a command.
type runRequest struct {
	target
	Action  string  `json:"action"`
	Options options `json:"options"`
	Preview bool    `json:"preview"`
}

// The messages of a run.
type (
	commandMessage struct {
		Command string `json:"command"`
		// Run is the command that a preview is of, as it will be run. It is empty if this is no preview.
		Run string `json:"run,omitempty"`
	}
	outMessage struct {
		Out string `json:"out"`
	}
	noteMessage struct {
		Note string `json:"note"`
	}
	exitMessage struct {
		Exit  int    `json:"exit"`
		Error string `json:"error"`
	}
)

// run runs the command of an action, and sends what it prints. It ends with the request: what the server has accepted continues.
func (w *workspace) run(c *call) error {
	var request runRequest
	if err := c.decode(&request); err != nil {
		return err
	}
	invoked, err := w.invocation(c.r.Context(), &request)
	if err != nil {
		return err
	}
	select {
	case c.session.running <- struct{}{}:
		defer func() { <-c.session.running }()
	default:
		return &refusal{http.StatusTooManyRequests, fmt.Sprintf("%d commands run already", maxRuns), "Wait until one has ended, or close it"}
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), w.runs.timeout)
	defer cancel()
	go func() {
		select {
		case <-c.session.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	writer := newStreamWriter(c.w)
	defer writer.end()
	out := &runOutput{to: writer, cluster: w.cluster, cancel: cancel}
	command := commandMessage{Command: invoked.line(w.runs.shown)}
	if request.Preview {
		command.Run = invoked.previewed().line(w.runs.shown)
	}
	out.send(command)
	out.send(w.runs.execute(ctx, invoked, out))
	return errClosed
}

// invocation checks a request, and returns its command.
func (w *workspace) invocation(ctx context.Context, request *runRequest) (*invocation, error) {
	at := slices.IndexFunc(actionsOf(request.Resource), func(a action) bool { return a.name == request.Action && a.command != "" })
	if at < 0 {
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf("%q is no action of %q", request.Action, request.Resource), ""}
	}
	a := actionsOf(request.Resource)[at]
	if err := request.checkWith(ofObjects); err != nil {
		return nil, err
	}
	if a.writes && !request.Preview {
		if err := w.checkAllowed(); err != nil {
			return nil, err
		}
	}
	var change *v1alpha1.Change
	if a.name == "restore" {
		var err error
		if change, err = w.cluster.api.Changes(request.Namespace).Get(ctx, request.Name, metav1.GetOptions{}); err != nil {
			return nil, err
		}
	}
	return invoke(a, request.target, request.Options, change, request.Preview)
}

// execute runs a command, and returns how it ended.
func (r *runs) execute(ctx context.Context, invoked *invocation, out *runOutput) exitMessage {
	printed := &lineWriter{write: func(line string) { out.send(outMessage{line}) }, cluster: out.cluster}
	noted := &lineWriter{write: out.note, cluster: out.cluster}
	command := r.plugin(genericiooptions.IOStreams{In: strings.NewReader(""), Out: printed, ErrOut: noted}, r.config)
	command.SetArgs(append(slices.Clone(r.connection), invoked.args()...))
	err := command.ExecuteContext(ctx)
	printed.end()
	noted.end()
	exit := exitMessage{Exit: cli.ExitCode(err)}
	if cli.IsFailure(err) {
		exit.Error = out.cluster.failure(err)
	}
	return exit
}

// runOutput sends messages of a run. After one cannot be sent, it ends the command.
type runOutput struct {
	cluster *cluster
	cancel  context.CancelFunc

	mu     sync.Mutex
	to     *streamWriter
	failed bool
}

func (o *runOutput) send(message any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed {
		return
	}
	if err := o.to.write(message); err != nil {
		o.failed = true
		o.cancel()
	}
}

// note sends a line of the error output, unless it is about keys of a terminal.
func (o *runOutput) note(line string) {
	if !cli.IsWaitNotice(line) {
		o.send(noteMessage{line})
	}
}

// lineWriter passes on the lines that are written.
type lineWriter struct {
	cluster *cluster
	write   func(line string)

	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, text...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete && len(w.rest) > maxLine {
			line, rest, complete = w.rest[:maxLine], w.rest[maxLine:], true
		}
		if !complete {
			return len(text), nil
		}
		w.pass(line)
		w.rest = rest
	}
}

// end passes on a last line without an end.
func (w *lineWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.pass(w.rest)
		w.rest = nil
	}
}

func (w *lineWriter) pass(line []byte) { w.write(w.cluster.text(string(line))) }
