// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// Storage is the REST storage of all kinds.
type Storage struct {
	// Endpoints are the served resources and subresources, such as gitdestinations and gitdestinations/status.
	Endpoints map[string]rest.Storage
	// Records writes the kinds that are served without create and update.
	Records *Records
}

// Config configures the storage. All fields are required unless their comment says otherwise.
type Config struct {
	// Scheme has the internal types and their versions registered.
	Scheme *runtime.Scheme
	// RESTOptions provide the storage backend.
	RESTOptions generic.RESTOptionsGetter
	// Clock is used for ages in tables and for the times of edits.
	Clock clock.PassiveClock
	// Validation configures validation.
	Validation validation.Options
	// Recorder records the author of each change. Optional.
	Recorder Recorder
	// WaitTimeout limits how long a response waits for the outcome of a request. The default is 10 s.
	WaitTimeout time.Duration
	// Plans compute what syncs of environments would change. Optional: without it, diffs and dry runs of syncs are
	// rejected.
	Plans Plans
	// Past reads what was mirrored to Git. Optional: without it, requests for the past are rejected.
	Past Past
	// Notifications send test messages. Optional: without it, tests of NotificationSinks are rejected.
	Notifications Notifications
	// Authorizer decides who is allowed to see Secrets in diffs. Optional: without it, no user is.
	Authorizer authorizer.Authorizer
	// Labels returns the labels of namespaces, by which catalogs admit environments of other namespaces. Optional:
	// without it, no selector matches.
	Labels accesspolicy.Labels
	// RecordAdmission admits records before they are created without a request. Optional.
	RecordAdmission admission.MutationInterface
}

// NewStorage opens the storage of all kinds.
func NewStorage(config Config) (*Storage, error) {
	storage := &Storage{
		Endpoints: map[string]rest.Storage{},
		Records:   &Records{scheme: config.Scheme, stores: map[string]*genericregistry.Store{}, admission: config.RecordAdmission},
	}
	stores := map[string]*genericregistry.Store{}
	for _, r := range resources(config.Validation) {
		store, err := newStore(config, r)
		if err != nil {
			return nil, err
		}
		if err := storage.add(config.Scheme, r, store); err != nil {
			return nil, err
		}
		stores[r.plural] = store
	}
	changes := &changeREST{changeStore: stores["changes"], store: stores["changes"], decides: config.Authorizer}
	storage.Endpoints["changes"] = changes
	storage.Endpoints["changes/diff"] = &changeDiffREST{changes: changes, past: config.Past}
	storage.Endpoints["gitdestinations/objects"] = &pastObjectsREST{
		destinations: stores["gitdestinations"], changes: changes, decides: config.Authorizer, past: config.Past,
	}
	storage.addRequests(config, stores)
	return storage, nil
}

// addRequests adds the subresources that accept requests.
func (s *Storage) addRequests(config Config, stores map[string]*genericregistry.Store) {
	waitTimeout := cmp.Or(config.WaitTimeout, defaultWaitTimeout)
	mirror := &mirrorSync{
		destinations: statusStore(config.Scheme, gitDestinations().erase(), stores["gitdestinations"]),
		records:      stores["gitdestinationstatuses"],
		clock:        config.Clock,
		waitTimeout:  waitTimeout,
	}
	catalogs := &catalogRequests{
		catalogs:    stores["appcatalogs"],
		statuses:    statusStore(config.Scheme, appCatalogs().erase(), stores["appcatalogs"]),
		records:     stores["syncstatuses"],
		clock:       config.Clock,
		waitTimeout: waitTimeout,
	}
	records := &recordRequests{
		records: stores["syncstatuses"], catalogs: stores["appcatalogs"], environments: stores["environments"],
		prompts: &prompts{
			statuses: statusStore(config.Scheme, environments().erase(), stores["environments"]), policies: stores["syncpolicies"],
			catalogs: stores["appcatalogs"], records: stores["syncstatuses"], clock: config.Clock,
		},
		clock: config.Clock,
	}
	s.Endpoints["gitdestinations/sync"] = mirror.endpoint()
	s.Endpoints["appcatalogs/sync"] = catalogs.sync()
	s.Endpoints["appcatalogs/rollback"] = catalogs.rollback()
	s.Endpoints["syncstatuses/dismiss"] = records.dismiss()
	s.Endpoints["syncstatuses/retry"] = records.retry()
	s.Endpoints["syncpipelines/sync"] = (&pipelineSync{
		pipelines: statusStore(config.Scheme, syncPipelines().erase(), stores["syncpipelines"]), policies: stores["syncpolicies"],
		clock: config.Clock, waitTimeout: waitTimeout,
	}).endpoint()
	s.Endpoints["notificationsinks/test"] = (&notificationTest{sinks: stores["notificationsinks"], sender: config.Notifications}).endpoint()
	s.addEnvironmentRequests(config, stores, records, waitTimeout)
}

// addEnvironmentRequests adds the request and diff subresources of Environments.
func (s *Storage) addEnvironmentRequests(
	config Config, stores map[string]*genericregistry.Store, records *recordRequests, waitTimeout time.Duration,
) {
	requests := &environmentRequests{
		environments: stores["environments"], statuses: records.prompts.statuses,
		records: stores["syncstatuses"], catalogs: stores["appcatalogs"],
		moves: records, labels: config.Labels, clock: config.Clock, waitTimeout: waitTimeout,
	}
	if requests.labels == nil {
		requests.labels = func(string) (labels.Set, bool) { return nil, false }
	}
	requests.plans = &plans{made: config.Plans, records: stores["syncstatuses"], catalog: requests.catalogOf}
	s.Endpoints["environments/sync"] = requests.sync()
	s.Endpoints["environments/diff"] = requests.diff()
	s.Endpoints["environments/secretdiff"] = requests.secretDiff(config.Authorizer)
	s.Endpoints["environments/dismiss"] = requests.dismiss()
	s.Endpoints["environments/undismiss"] = requests.undismiss()
	s.Endpoints["environments/resolve"] = requests.resolve()
	s.Endpoints["environments/rollback"] = requests.rollback()
	s.Endpoints["environments/rediscover"] = requests.rediscover()
}

// add adds the endpoints of a kind.
func (s *Storage) add(scheme *runtime.Scheme, r resource, store *genericregistry.Store) error {
	if r.record {
		s.Endpoints[r.plural] = &recordREST{readAndDelete: store, naming: naming{r.shortNames}}
		return s.Records.add(r.newObject(), store)
	}
	s.Endpoints[r.plural] = &objectREST{Store: store, naming: naming{r.shortNames}}
	status := statusStore(scheme, r, store)
	status.UpdateStrategy = statusEndpointStrategy{statusStrategy{newStrategy(scheme, r)}}
	s.Endpoints[r.plural+"/status"] = &statusREST{store: status}
	return nil
}

// statusStore returns the store through which this server updates the status of a kind.
func statusStore(scheme *runtime.Scheme, r resource, store *genericregistry.Store) *genericregistry.Store {
	status := *store
	strategy := statusStrategy{newStrategy(scheme, r)}
	status.UpdateStrategy = strategy
	status.ResetFieldsStrategy = strategy
	status.BeginUpdate = nil
	return &status
}

// newStore opens the storage of a kind.
func newStore(config Config, r resource) (*genericregistry.Store, error) {
	store := &genericregistry.Store{
		NewFunc:                   r.newObject,
		NewListFunc:               r.newList,
		DefaultQualifiedResource:  configbutler.Resource(r.plural),
		SingularQualifiedResource: configbutler.Resource(r.singular),
		TableConvertor:            &table{columns: r.columns, nameLast: r.nameLast, clock: config.Clock},
	}
	base := newStrategy(config.Scheme, r)
	if r.record {
		strategy := recordStrategy{base}
		store.CreateStrategy, store.UpdateStrategy, store.DeleteStrategy = strategy, strategy, strategy
	} else {
		strategy := objectStrategy{base, config.Clock}
		store.CreateStrategy, store.UpdateStrategy, store.DeleteStrategy = strategy, strategy, strategy
		store.ResetFieldsStrategy = strategy
		store.BeginUpdate = strategy.beginUpdate
	}
	options := config.RESTOptions
	if config.Recorder != nil {
		options = &recordingOptions{RESTOptionsGetter: options, recorder: config.Recorder, clock: config.Clock}
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: r.attributes}); err != nil {
		return nil, fmt.Errorf("opening the storage of %s: %w", r.plural, err)
	}
	return store, nil
}
