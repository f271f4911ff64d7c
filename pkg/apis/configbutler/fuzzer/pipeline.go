// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzzer

import (
	"sigs.k8s.io/randfill"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
)

func fillSyncPipelineSpec(spec *configbutler.SyncPipelineSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Mode = oneOf(c, configbutler.PipelineModeWatch, configbutler.PipelineModePoll)
	fillMissing(&spec.PollInterval, c)
	fillMissing(&spec.Debounce, c)
	fillMissing(&spec.ResyncInterval, c)
}

func fillDefinitionSource(source *configbutler.DefinitionSource, c randfill.Continue) {
	c.FillNoCustom(source)
	fillMissing(&source.Enabled, c)
}

func fillInstanceSource(source *configbutler.InstanceSource, c randfill.Continue) {
	c.FillNoCustom(source)
	fillMissing(&source.Enabled, c)
	if source.Exclude == nil {
		source.Exclude = []string{}
	}
}

func fillPipelineBatch(batch *configbutler.PipelineBatch, c randfill.Continue) {
	c.FillNoCustom(batch)
	fillMissing(&batch.MaxItems, c)
	fillMissing(&batch.MaxWait, c)
}

func fillHTTPSink(sink *configbutler.HTTPSink, c randfill.Continue) {
	c.FillNoCustom(sink)
	sink.Format = oneOf(c, configbutler.PipelineFormatClusterWhisperer, configbutler.PipelineFormatDotAI,
		configbutler.PipelineFormatCloudEvents)
	if sink.Format == configbutler.PipelineFormatDotAI {
		sink.Collection = oneOf(c, "capabilities", "x"+c.String(10))
	}
	fillMissing(&sink.Timeout, c)
}

func fillJobSink(sink *configbutler.JobSink, c randfill.Continue) {
	c.FillNoCustom(sink)
	sink.ServiceAccountName = "x" + c.String(10)
	sink.ConcurrencyPolicy = oneOf(c, configbutler.PipelineConcurrencyForbid, configbutler.PipelineConcurrencyAllow)
}

func fillPipelineRetry(retry *configbutler.PipelineRetry, c randfill.Continue) {
	c.FillNoCustom(retry)
	fillMissing(&retry.MaxAttempts, c)
	fillMissing(&retry.Backoff, c)
	fillMissing(&retry.MaxBackoff, c)
}

func fillPipelineSyncSpec(spec *configbutler.PipelineSyncSpec, c randfill.Continue) {
	c.FillNoCustom(spec)
	spec.Scope = oneOf(c, configbutler.PipelineScopeAll, configbutler.PipelineScopeDefinitions, configbutler.PipelineScopeInstances)
}
