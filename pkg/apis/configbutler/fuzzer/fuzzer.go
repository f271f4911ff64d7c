// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fuzzer fills the internal kinds with random content that survives a round trip through every version: fields
// with a default in a version are never empty.
package fuzzer

import (
	"sigs.k8s.io/randfill"

	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

// Funcs returns the fuzzer functions of kinds with defaults.
func Funcs(_ runtimeserializer.CodecFactory) []any {
	return []any{
		fillGitRepoConfigSpec, fillGitDestinationSpec, fillDelivery, fillPullRequestDelivery, fillNamespacedRules, fillCommitSigning,
		fillAppCatalogSpec, fillPatch, fillSyncPolicySpec, fillRetryPolicy, fillRetention, fillChangeRetention,
		fillEnvironmentSpec, fillAdaptation, fillIngressHosts, fillSyncWindow, fillSyncRequestSpec,
		fillSyncPipelineSpec, fillDefinitionSource, fillInstanceSource, fillPipelineBatch, fillHTTPSink, fillJobSink,
		fillPipelineRetry, fillPipelineSyncSpec, fillReminders,
		fillNotificationSinkSpec, fillSlackSink, fillEmailSink, fillNotificationTestSpec,
	}
}

func fillGitRepoConfigSpec(spec *configbutler.GitRepoConfigSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &configbutler.AccessPolicy{}
		c.Fill(spec.AccessPolicy)
	}
	spec.Provider = oneOf(c, configbutler.ProviderGeneric, configbutler.ProviderGitHub, configbutler.ProviderAzure)
}

func fillDelivery(delivery *configbutler.Delivery, c randfill.Continue) {
	c.FillNoCustom(delivery)
	delivery.Type = configbutler.DeliveryPush
	if delivery.PullRequest != nil {
		delivery.Type = configbutler.DeliveryPullRequest
	}
}

func fillPullRequestDelivery(delivery *configbutler.PullRequestDelivery, c randfill.Continue) {
	c.FillNoCustom(delivery)
	delivery.BranchPrefix = "x" + c.String(10)
	fillMissing(&delivery.CloseWhenEqual, c)
}

func fillGitDestinationSpec(spec *configbutler.GitDestinationSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &configbutler.AccessPolicy{}
		c.Fill(spec.AccessPolicy)
	}
	spec.Granularity = oneOf(c, configbutler.GranularityPerAuthor, configbutler.GranularityPerChange, configbutler.GranularityBatch)
	spec.Secrets = oneOf(c, configbutler.SecretsEncrypt, configbutler.SecretsAsIs, configbutler.SecretsOmit)
	spec.Prune = oneOf(c, configbutler.PruneAlways, configbutler.PruneNever)
}

func fillNamespacedRules(rules *configbutler.NamespacedRules, c randfill.Continue) {
	c.FillNoCustom(rules)
	rules.Mode = oneOf(c, configbutler.AccessModeSameNamespace, configbutler.AccessModeAllNamespaces, configbutler.AccessModeFromSelector)
}

func fillCommitSigning(signing *configbutler.CommitSigning, c randfill.Continue) {
	c.FillNoCustom(signing)
	signing.Format = oneOf(c, configbutler.SigningFormatSSH, configbutler.SigningFormatOpenPGP)
}

func fillAppCatalogSpec(spec *configbutler.AppCatalogSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	if spec.AccessPolicy == nil {
		spec.AccessPolicy = &configbutler.CatalogAccessPolicy{}
		c.Fill(spec.AccessPolicy)
	}
	if spec.Ignore == nil {
		spec.Ignore = []configbutler.IgnoreRule{}
	}
	fillMissing(&spec.HistoryLimit, c)
	spec.Secrets = oneOf(c, configbutler.CatalogSecretsRequester, configbutler.CatalogSecretsShared)
}

func fillPatch(patch *configbutler.Patch, c randfill.Continue) {
	c.FillNoCustom(patch)
	patch.Type = oneOf(c, configbutler.PatchStrategicMerge, configbutler.PatchJSON6902, configbutler.PatchMerge)
}

func fillEnvironmentSpec(spec *configbutler.EnvironmentSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Type = oneOf(c, configbutler.EnvironmentShared, configbutler.EnvironmentBranch)
	spec.DeletionPolicy = oneOf(c, configbutler.DeletionPolicyDelete, configbutler.DeletionPolicyOrphan)
	fillMissing(&spec.HistoryLimit, c)
}

func fillAdaptation(adapt *configbutler.Adaptation, c randfill.Continue) {
	c.FillNoCustom(adapt)
	adapt.Replicas = oneOf(c, configbutler.ReplicasOne, configbutler.ReplicasAsSource)
	adapt.CronJobs = oneOf(c, configbutler.CronJobsSuspend, configbutler.CronJobsAsSource)
	adapt.LoadBalancers = oneOf(c, configbutler.LoadBalancersClusterIP, configbutler.LoadBalancersAsSource)
}

func fillIngressHosts(hosts *configbutler.IngressHosts, c randfill.Continue) {
	c.FillNoCustom(hosts)
	hosts.Type = oneOf(c, configbutler.IngressHostsTemplate, configbutler.IngressHostsOmit, configbutler.IngressHostsAsSource)
}

func fillSyncWindow(window *configbutler.SyncWindow, c randfill.Continue) {
	c.FillNoCustom(window)
	window.TimeZone = oneOf(c, "UTC", "Europe/Berlin", c.String(10)+"x")
}

func fillSyncRequestSpec(spec *configbutler.SyncRequestSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Action = oneOf(c, configbutler.SyncActionCatalog, configbutler.SyncActionCluster, configbutler.SyncActionAll)
}

func fillSyncPolicySpec(spec *configbutler.SyncPolicySpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	fillMissing(&spec.BatchWindow, c)
	fillMissing(&spec.MaxSyncsPerMinute, c)
}

func fillRetryPolicy(policy *configbutler.RetryPolicy, c randfill.Continue) {
	c.FillNoCustom(policy)
	fillMissing(&policy.MaxAttempts, c)
	fillMissing(&policy.Backoff, c)
	fillMissing(&policy.MaxBackoff, c)
}

func fillRetention(retention *configbutler.Retention, c randfill.Continue) {
	c.FillNoCustom(retention)
	fillMissing(&retention.Days, c)
	fillMissing(&retention.KeepPerSubject, c)
	fillMissing(&retention.MaxPerSubject, c)
}

func fillChangeRetention(retention *configbutler.ChangeRetention, c randfill.Continue) {
	c.FillNoCustom(retention)
	fillMissing(&retention.TTL, c)
	fillMissing(&retention.MaxTotal, c)
	fillMissing(&retention.MaxPerObject, c)
}

func fillMissing[T any](field **T, c randfill.Continue) {
	if *field == nil {
		*field = new(T)
		c.Fill(*field)
	}
}

func oneOf[T any](c randfill.Continue, choices ...T) T {
	return choices[c.Intn(len(choices))]
}
