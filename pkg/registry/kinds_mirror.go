// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

func gitRepoConfigs(
	options validation.Options,
) kind[*configbutler.GitRepoConfig, configbutler.GitRepoConfigSpec, configbutler.GitRepoConfigStatus] {
	type obj = *configbutler.GitRepoConfig
	columns := []column[obj]{
		textColumn("URL", "Where the repository is.", func(o obj) string { return o.Spec.RepoURL }),
	}
	columns = append(columns, conditionColumns(func(o obj) []metav1.Condition { return o.Status.Conditions })...)
	columns = append(columns,
		wide(textColumn("Branches", "Branches that destinations may write.", func(o obj) string {
			return strings.Join(o.Spec.AllowedBranches, ",")
		})),
		ageColumn[obj]())
	return kind[obj, configbutler.GitRepoConfigSpec, configbutler.GitRepoConfigStatus]{
		plural: "gitrepoconfigs", singular: "gitrepoconfig", shortNames: []string{"grc"}, namespaced: true,
		newObject:            func() obj { return &configbutler.GitRepoConfig{} },
		newList:              func() runtime.Object { return &configbutler.GitRepoConfigList{} },
		spec:                 func(o obj) *configbutler.GitRepoConfigSpec { return &o.Spec },
		status:               func(o obj) *configbutler.GitRepoConfigStatus { return &o.Status },
		validate:             func(o obj) field.ErrorList { return validation.ValidateGitRepoConfig(o, options) },
		validateUpdate:       func(o, old obj) field.ErrorList { return validation.ValidateGitRepoConfigUpdate(o, old, options) },
		validateStatusUpdate: validation.ValidateGitRepoConfigStatusUpdate,
		columns:              columns,
	}
}

func gitDestinations() kind[*configbutler.GitDestination, configbutler.GitDestinationSpec, configbutler.GitDestinationState] {
	type obj = *configbutler.GitDestination
	columns := []column[obj]{
		textColumn("Repository", "The GitRepoConfig of the repository.", func(o obj) string {
			return reference(o.Spec.RepoRef.Namespace, o.Spec.RepoRef.Name)
		}),
		textColumn("Branch", "The branch that is written.", func(o obj) string { return o.Spec.Branch }),
		textColumn("Folder", "The folder that is written.", func(o obj) string { return folder(o.Spec.BaseFolder) }),
	}
	columns = append(columns, conditionColumns(func(o obj) []metav1.Condition { return o.Status.Conditions })...)
	columns = append(columns,
		wide(textColumn("Secrets", "What becomes of Secrets.", secretHandling)),
		wide(textColumn("Prune", "What becomes of files that no object maps to.", func(o obj) string { return string(o.Spec.Prune) })),
		ageColumn[obj]())
	return kind[obj, configbutler.GitDestinationSpec, configbutler.GitDestinationState]{
		plural: "gitdestinations", singular: "gitdestination", shortNames: []string{"gd"}, namespaced: true,
		newObject:             func() obj { return &configbutler.GitDestination{} },
		newList:               func() runtime.Object { return &configbutler.GitDestinationList{} },
		spec:                  func(o obj) *configbutler.GitDestinationSpec { return &o.Spec },
		status:                func(o obj) *configbutler.GitDestinationState { return &o.Status },
		validate:              validation.ValidateGitDestination,
		validateUpdate:        validation.ValidateGitDestinationUpdate,
		validateStatusUpdate:  validation.ValidateGitDestinationStateUpdate,
		validateStatusRequest: validation.ValidateGitDestinationStateRequest,
		columns:               columns,
	}
}

// secretHandling returns how a destination handles Secrets: what the spec says, until it is known whether they can be
// encrypted.
func secretHandling(o *configbutler.GitDestination) string {
	encrypted := apimeta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionSecretsEncrypted)
	switch {
	case o.Spec.Secrets != configbutler.SecretsEncrypt || encrypted == nil:
		return string(o.Spec.Secrets)
	case encrypted.Status == metav1.ConditionTrue:
		return "Encrypted"
	default:
		return "Left out"
	}
}

func gitDestinationStatuses() kind[*configbutler.GitDestinationStatus, struct{}, configbutler.GitDestinationRecord] {
	type obj = *configbutler.GitDestinationStatus
	return kind[obj, struct{}, configbutler.GitDestinationRecord]{
		plural: "gitdestinationstatuses", singular: "gitdestinationstatus", shortNames: []string{"gds"}, namespaced: true,
		newObject:      func() obj { return &configbutler.GitDestinationStatus{} },
		newList:        func() runtime.Object { return &configbutler.GitDestinationStatusList{} },
		validate:       validation.ValidateGitDestinationStatus,
		validateUpdate: validation.ValidateGitDestinationStatusUpdate,
		columns: []column[obj]{
			textColumn("Branch", "The branch that is written.", func(o obj) string { return o.Status.Branch }),
			textColumn("Folder", "The folder that is written.", func(o obj) string { return folder(o.Status.Folder) }),
			textColumn("Commit", "The newest commit that the remote has accepted.", func(o obj) string {
				if o.Status.LastCommit == nil {
					return ""
				}
				return abbreviated(o.Status.LastCommit.SHA)
			}),
			agoColumn("Age-of-Commit", "Time since that commit.", func(o obj) *metav1.Time {
				if o.Status.LastCommit == nil {
					return nil
				}
				return &o.Status.LastCommit.Time
			}),
			numberColumn("Pending", "Changes that the remote has not accepted yet.", func(o obj) int64 { return o.Status.PendingChanges }),
			numberColumn("Objects", "Live objects that map to the destination.", func(o obj) int64 { return o.Status.Objects }),
			{name: "State", description: "Summary of the status, in a sentence.", cellType: text, cell: func(o obj, now time.Time) any {
				return withOpenTime(&o.Status, now)
			}},
			wide(numberColumn("Files", "Managed files in the folder.", func(o obj) int64 { return o.Status.Files })),
			wide(agoColumn("Seeded", "Time since everything was last listed and compared.", func(o obj) *metav1.Time {
				return o.Status.LastSeedTime
			})),
			wide(numberColumn("Retries", "Pushes that had to be tried again.", func(o obj) int64 { return o.Status.PushRetries })),
			wide(textColumn("Error", "What keeps the destination from being up to date.", func(o obj) string { return o.Status.LastError })),
		},
	}
}

// withOpenTime returns the state of a destination, with how long its pull request is open.
func withOpenTime(status *configbutler.GitDestinationRecord, now time.Time) string {
	open := status.Proposal
	if open == nil || open.State != configbutler.ProposalOpen || !strings.HasSuffix(status.State, fmt.Sprintf(" proposed in #%d", open.Number)) {
		return status.State
	}
	return fmt.Sprintf("%s, open for %s", status.State, ago(&open.OpenTime, now))
}

func watchRules() kind[*configbutler.WatchRule, configbutler.WatchRuleSpec, configbutler.WatchRuleStatus] {
	type obj = *configbutler.WatchRule
	destination := func(o obj) string {
		return reference(o.Spec.DestinationRef.Namespace, o.Spec.DestinationRef.Name)
	}
	status := func(o obj) *configbutler.WatchRuleStatus { return &o.Status }
	return kind[obj, configbutler.WatchRuleSpec, configbutler.WatchRuleStatus]{
		plural: "watchrules", singular: "watchrule", shortNames: []string{"wr"}, namespaced: true,
		newObject:            func() obj { return &configbutler.WatchRule{} },
		newList:              func() runtime.Object { return &configbutler.WatchRuleList{} },
		spec:                 func(o obj) *configbutler.WatchRuleSpec { return &o.Spec },
		status:               status,
		validate:             validation.ValidateWatchRule,
		validateUpdate:       validation.ValidateWatchRuleUpdate,
		validateStatusUpdate: validation.ValidateWatchRuleStatusUpdate,
		validateStatusRequest: func(rule, old obj) field.ErrorList {
			return validation.ValidateWatchRuleStatusRequest(&rule.Status, &old.Status)
		},
		edits:   ruleEdits(status),
		columns: ruleColumns(destination, status),
	}
}

func clusterWatchRules() kind[*configbutler.ClusterWatchRule, configbutler.ClusterWatchRuleSpec, configbutler.WatchRuleStatus] {
	type obj = *configbutler.ClusterWatchRule
	destination := func(o obj) string {
		return reference(o.Spec.DestinationRef.Namespace, o.Spec.DestinationRef.Name)
	}
	status := func(o obj) *configbutler.WatchRuleStatus { return &o.Status }
	return kind[obj, configbutler.ClusterWatchRuleSpec, configbutler.WatchRuleStatus]{
		plural: "clusterwatchrules", singular: "clusterwatchrule", shortNames: []string{"cwr"},
		newObject:            func() obj { return &configbutler.ClusterWatchRule{} },
		newList:              func() runtime.Object { return &configbutler.ClusterWatchRuleList{} },
		spec:                 func(o obj) *configbutler.ClusterWatchRuleSpec { return &o.Spec },
		status:               status,
		validate:             validation.ValidateClusterWatchRule,
		validateUpdate:       validation.ValidateClusterWatchRuleUpdate,
		validateStatusUpdate: validation.ValidateClusterWatchRuleStatusUpdate,
		validateStatusRequest: func(rule, old obj) field.ErrorList {
			return validation.ValidateWatchRuleStatusRequest(&rule.Status, &old.Status)
		},
		edits:   ruleEdits(status),
		columns: ruleColumns(destination, status),
	}
}

// ruleColumns returns the columns of both kinds of rules.
func ruleColumns[O object](destination func(O) string, status func(O) *configbutler.WatchRuleStatus) []column[O] {
	columns := []column[O]{
		textColumn("Destination", "The GitDestination that objects are mirrored to.", destination),
		numberColumn("Types", "Resource types that the rule selects now.", func(o O) int64 {
			return int64(len(status(o).MatchedResourceTypes))
		}),
	}
	columns = append(columns, conditionColumns(func(o O) []metav1.Condition { return status(o).Conditions })...)
	return append(columns, ageColumn[O]())
}
