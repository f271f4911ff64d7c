// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// Deposits are files that other parts of this server write to the folders of GitDestinations, besides the objects that rules select. They
// are durable only once the remote has accepted them: the caller keeps the content until then, and calls Write again after an error.
type Deposits struct{ requests chan *deposit }

// NewDeposits returns Deposits for one Controller.
func NewDeposits() *Deposits { return &Deposits{requests: make(chan *deposit)} }

// deposit is a request to write a file.
type deposit struct {
	destination types.NamespacedName
	// path is that of the file in the server's own folder of the base folder. If it is empty, the request only checks the destination.
	path    string
	content []byte
	// subject is the first line of the commit's message.
	subject string
	// result receives the result, once.
	result chan error
	// withdrawn is set if the caller has stopped waiting.
	withdrawn atomic.Bool
}

// Check returns why a file cannot be written to a GitDestination now; nil if it can. It blocks until a Controller is running.
func (d *Deposits) Check(ctx context.Context, destination types.NamespacedName) error {
	return d.submit(ctx, &deposit{destination: destination})
}

// Write writes a file to the folder .configbutler of a GitDestination's base folder. The destination and its GitRepoConfig must admit
// cluster-scoped objects (spec.accessPolicy.allowClusterRules). It returns nil once the branch on the remote has the file. After an error
// the branch may have it nevertheless; writing it again makes no second commit.
func (d *Deposits) Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, subject string) error {
	return d.submit(ctx, &deposit{destination: destination, path: path, content: content, subject: subject})
}

// submit sends a request to the controller and waits for its result.
func (d *Deposits) submit(ctx context.Context, request *deposit) error {
	request.result = make(chan error, 1)
	select {
	case d.requests <- request:
	case <-ctx.Done():
		return fmt.Errorf("hand a file to the mirror: %w", ctx.Err())
	}
	select {
	case err := <-request.result:
		return err
	case <-ctx.Done():
		request.withdrawn.Store(true)
		return fmt.Errorf("GitDestination %s has not been written: %w", request.destination, ctx.Err())
	}
}

// receiveDeposits adds deposits to the queues of their destinations until ctx ends.
func (m *mirror) receiveDeposits(ctx context.Context) {
	if m.config.Deposits == nil {
		return
	}
	select {
	case <-m.registry.adopted: // Before, an existing destination may be missing.
	case <-ctx.Done():
		return
	}
	for {
		select {
		case request := <-m.config.Deposits.requests:
			m.registry.deposit(request)
		case <-ctx.Done():
			return
		}
	}
}

// depositProblem returns why a destination accepts no deposits now; nil if it does. It only returns failures of the branch that the worker
// has found and retries.
func (d *destination) depositProblem() error {
	p := d.plan.Load()
	refusal := p.refusal("", "what is in no namespace", nil)
	switch failure := d.record.current().failure; {
	case !refusal.IsZero():
		return errors.New(refusal.Message)
	case !p.problem.IsZero():
		return fmt.Errorf("GitDestination %s: %s", d.key, p.problem.Message)
	case p.object.Spec.Suspend:
		return fmt.Errorf("GitDestination %s is suspended", d.key)
	case p.branch.base != "":
		// A file that no object makes again would be lost with a declined pull request.
		return fmt.Errorf("GitDestination %s delivers by pull request: let the archive be in one that pushes (spec.delivery.type)", d.key)
	case failure != nil:
		return d.depositFailure(failure)
	}
	return nil
}

// depositFailure returns the error of a deposit for a failure of the branch.
func (d *destination) depositFailure(failure error) error {
	return fmt.Errorf("GitDestination %s: %s", d.key, reasonOf(failure, v1alpha1.ReasonPushFailed).Message)
}

// failDeposits fails the pending deposits, because the branch cannot be written.
func (d *destination) failDeposits(failure error) {
	if errors.Is(failure, gitrepo.ErrMoved) {
		return // Another writer has pushed; the push is retried at once.
	}
	d.deposits.settleAll(d.depositFailure(failure))
}

// depositPusher pushes the deposits of the destinations on a branch.
type depositPusher struct {
	remote *remoteBranch
	stager *stager
	pusher *pusher
}

// pushPending pushes the pending deposits, each by itself.
func (p *depositPusher) pushPending(ctx context.Context, members []member, slot *branchSlot) error {
	for _, m := range members {
		for _, request := range m.destination.deposits.pending() {
			if err := m.destination.depositProblem(); err != nil {
				m.destination.deposits.settle(request, err) // The plan has changed since the deposit was queued.
				continue
			}
			if err := p.push(ctx, members, m, request); err != nil {
				return err
			}
			m.destination.deposits.settle(request, nil)
			if err := slot.giveWay(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// push commits and pushes a deposit, unless the branch has it.
func (p *depositPusher) push(ctx context.Context, members []member, m member, request *deposit) error {
	file := gitrepo.Change{Path: m.plan.file(path.Join(ownFolder, request.path)), Content: request.content}
	if hash, exists := p.remote.tree().Lookup(file.Path); exists && hash == gitrepo.BlobHash(file.Content) {
		return nil
	}
	b := &batch{member: m}
	commit := p.remote.wording.deposit(m.destination.key, request.subject)
	hash, staged, err := p.stager.stageFiles(m, &commit, []gitrepo.Change{file})
	if err != nil {
		return err
	}
	if staged {
		b.pushed.add(hash, subjectOf(commit), nil)
	}
	return p.pusher.push(ctx, members, []*batch{b})
}

// depositQueue has the pending deposits of a destination, oldest first.
type depositQueue struct {
	mu       sync.Mutex
	requests []*deposit
}

func (q *depositQueue) add(request *deposit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = append(q.requests, request)
}

// pending returns the deposits whose callers still wait, and drops the others.
func (q *depositQueue) pending() []*deposit {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.requests = slices.DeleteFunc(q.requests, func(request *deposit) bool { return request.withdrawn.Load() })
	return slices.Clone(q.requests)
}

// settle removes a deposit and sends its result to the caller.
func (q *depositQueue) settle(request *deposit, result error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.requests, request); i >= 0 {
		q.requests = slices.Delete(q.requests, i, i+1)
		request.result <- result
	}
}

// settleAll removes all deposits and sends the result to their callers.
func (q *depositQueue) settleAll(result error) {
	for _, request := range q.pending() {
		q.settle(request, result)
	}
}
