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

// Deposits are files that another part of this server wants to have in the folders of GitDestinations, beside what rules
// select. They are made durable by nobody but the remote: whoever hands one over keeps its content until it is accepted,
// and hands it over again after an error.
type Deposits struct{ requests chan *deposit }

// NewDeposits returns deposits for one mirror to take.
func NewDeposits() *Deposits { return &Deposits{requests: make(chan *deposit)} }

// deposit is one of them on its way.
type deposit struct {
	destination types.NamespacedName
	// path is the file's, in the server's own folder of the base folder. Without one nothing is to be written.
	path    string
	content []byte
	// subject is the first line of the commit's message.
	subject string
	// answer takes the outcome, once.
	answer chan error
	// withdrawn says that nobody waits for it any more.
	withdrawn atomic.Bool
}

// Check says why a file would not be taken for a GitDestination now. It waits for a mirror to run.
func (d *Deposits) Check(ctx context.Context, destination types.NamespacedName) error {
	return d.hand(ctx, &deposit{destination: destination})
}

// Write writes a file to the folder .configbutler of a GitDestination's base folder, which the destination and its GitRepoConfig
// must let objects without a namespace do (spec.accessPolicy.allowClusterRules). It returns nil once the branch on the remote
// has the file. After an error the file may be there all the same; writing it again makes no second commit.
func (d *Deposits) Write(ctx context.Context, destination types.NamespacedName, path string, content []byte, subject string) error {
	return d.hand(ctx, &deposit{destination: destination, path: path, content: content, subject: subject})
}

func (d *Deposits) hand(ctx context.Context, request *deposit) error {
	request.answer = make(chan error, 1)
	select {
	case d.requests <- request:
	case <-ctx.Done():
		return fmt.Errorf("hand a file to the mirror: %w", ctx.Err())
	}
	select {
	case err := <-request.answer:
		return err
	case <-ctx.Done():
		request.withdrawn.Store(true)
		return fmt.Errorf("GitDestination %s has not been written: %w", request.destination, ctx.Err())
	}
}

// takeDeposits gives deposits to their destinations until ctx ends.
func (m *mirror) takeDeposits(ctx context.Context) {
	if m.config.Deposits == nil {
		return
	}
	select {
	case <-m.adopted: // before, a destination may be there and not be known
	case <-ctx.Done():
		return
	}
	for {
		select {
		case request := <-m.config.Deposits.requests:
			m.deposit(request)
		case <-ctx.Done():
			return
		}
	}
}

// deposit gives a deposit to its destination, if that takes it.
func (m *mirror) deposit(request *deposit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, ok := m.destinations[request.destination]
	if !ok {
		request.answer <- fmt.Errorf("there is no GitDestination %s", request.destination)
		return
	}
	if err := d.takesDeposits(); err != nil || request.path == "" {
		request.answer <- err
		return
	}
	d.deposits.add(request)
	m.wake(d.plan.Load().branch)
}

// takesDeposits says why a destination takes none now. What keeps its branch from being written is found out and tried
// again by the branch's worker.
func (d *destination) takesDeposits() error {
	p := d.plan.Load()
	refusal := p.refusal("", "what is in no namespace", nil)
	switch failure := d.record.current().failure; {
	case !refusal.ok():
		return errors.New(refusal.message)
	case !p.verdict.ok():
		return fmt.Errorf("GitDestination %s: %s", d.key, p.verdict.message)
	case p.object.Spec.Suspend:
		return fmt.Errorf("GitDestination %s is suspended", d.key)
	case failure != nil:
		return d.undeposited(failure)
	}
	return nil
}

func (d *destination) undeposited(failure error) error {
	return fmt.Errorf("GitDestination %s: %s", d.key, verdictOf(failure, v1alpha1.ReasonPushFailed).message)
}

// failDeposits lets those who wait know why a destination cannot be written.
func (d *destination) failDeposits(failure error) {
	if errors.Is(failure, gitrepo.ErrMoved) {
		return // another writer was faster: it is tried again at once
	}
	for _, request := range d.deposits.waiting() {
		d.deposits.settle(request, d.undeposited(failure))
	}
}

// pushDeposits pushes the deposits that wait, each for itself.
func (w *worker) pushDeposits(ctx context.Context, members []member) error {
	for _, m := range members {
		for _, request := range m.deposits.waiting() {
			if err := m.takesDeposits(); err != nil {
				m.deposits.settle(request, err) // its plan has changed since it took it
				continue
			}
			if err := w.pushDeposit(ctx, members, m, request); err != nil {
				return err
			}
			m.deposits.settle(request, nil)
			if err := w.slot.giveWay(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushDeposit makes a commit of a deposit, unless the branch has it, and pushes it.
func (w *worker) pushDeposit(ctx context.Context, members []member, m member, request *deposit) error {
	file := gitrepo.Change{Path: m.plan.file(path.Join(ownFolder, request.path)), Content: request.content}
	if hash, exists := w.branch.Snapshot().Lookup(file.Path); exists && hash == gitrepo.BlobHash(file.Content) {
		return nil
	}
	b := &batch{member: m}
	commit := w.wording.deposit(m.key, request.subject)
	hash, staged, err := w.stageFiles(m, &commit, []gitrepo.Change{file})
	if err != nil {
		return err
	}
	if staged {
		b.pushed.add(hash, subjectOf(commit), nil)
	}
	return w.push(ctx, members, []*batch{b})
}

// depositQueue are the deposits that a destination has taken, the oldest first.
type depositQueue struct {
	mu    sync.Mutex
	taken []*deposit
}

func (q *depositQueue) add(request *deposit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = append(q.taken, request)
}

// waiting returns those that somebody waits for, and forgets the others.
func (q *depositQueue) waiting() []*deposit {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken = slices.DeleteFunc(q.taken, func(request *deposit) bool { return request.withdrawn.Load() })
	return slices.Clone(q.taken)
}

// settle tells the outcome of a deposit.
func (q *depositQueue) settle(request *deposit, outcome error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.taken, request); i >= 0 {
		q.taken = slices.Delete(q.taken, i, i+1)
		request.answer <- outcome
	}
}
