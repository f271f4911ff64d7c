// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package callerrights

import (
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/rights"
)

// versioned is an object as packages outside the API know it. It shares what it can with the one that is given.
func versioned[In, Out any](in *In, convert func(*In, *Out, conversion.Scope) error) (*Out, error) {
	out := new(Out)
	if err := convert(in, out, nil); err != nil {
		return nil, fmt.Errorf("converting a %T: %w", in, err)
	}
	return out, nil
}

// readByRule is what the server reads for a rule.
func (p *Plugin) readByRule(o *configbutler.WatchRule) (wanted, error) {
	rule, err := versioned(o, v1alpha1.Convert_configbutler_WatchRule_To_v1alpha1_WatchRule)
	if err != nil {
		return wanted{}, err
	}
	permissions, warnings := rights.OfRule(p.resolver, rule)
	return wanted{permissions: permissions, warnings: warnings}, nil
}

// readByClusterRule is what the server reads for a rule of the cluster.
func (p *Plugin) readByClusterRule(o *configbutler.ClusterWatchRule) (wanted, error) {
	rule, err := versioned(o, v1alpha1.Convert_configbutler_ClusterWatchRule_To_v1alpha1_ClusterWatchRule)
	if err != nil {
		return wanted{}, err
	}
	permissions, warnings := rights.OfClusterRule(p.resolver, rule)
	return wanted{permissions: permissions, warnings: warnings}, nil
}

// archivedBy is what the server sends to a destination for a SyncPolicy.
func archivedBy(o *configbutler.SyncPolicy) (wanted, error) {
	policy, err := versioned(o, v1alpha1.Convert_configbutler_SyncPolicy_To_v1alpha1_SyncPolicy)
	if err != nil {
		return wanted{}, err
	}
	return wanted{permissions: rights.OfPolicy(policy)}, nil
}

// shownBy is what a catalog shows.
func shownBy(o *configbutler.AppCatalog) (wanted, error) {
	catalog, err := versioned(o, v1alpha1.Convert_configbutler_AppCatalog_To_v1alpha1_AppCatalog)
	if err != nil {
		return wanted{}, err
	}
	return wanted{permissions: rights.OfCatalog(catalog)}, nil
}

// secretsOf are the Secrets that a repository names.
func secretsOf(o *configbutler.GitRepoConfig) ([]rights.Permission, error) {
	repository, err := versioned(o, v1alpha1.Convert_configbutler_GitRepoConfig_To_v1alpha1_GitRepoConfig)
	if err != nil {
		return nil, err
	}
	return rights.OfRepository(repository), nil
}
