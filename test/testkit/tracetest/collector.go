// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracetest is an OpenTelemetry collector, which receives traces over gRPC as any other does, and keeps them in memory.
package tracetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Name string
	// Trace, ID and Parent are hexadecimal. Parent is empty for the first span of a trace.
	Trace, ID, Parent string
	// Service is the name of the process.
	Service string
	// Links are the linked spans, by their IDs.
	Links      []string
	Attributes map[string]string
	// Start and End are in nanoseconds.
	Start, End uint64
	// Failed is set if the span has the status Error.
	Failed bool
}

// Collector receives traces.
type Collector struct {
	collector.UnimplementedTraceServiceServer
	// Address is the host and port that it listens on.
	Address string

	server *grpc.Server
	mu     sync.Mutex
	spans  []Span
	// received is everything that was received, in the order of its arrival.
	received bytes.Buffer
	// log is the file that receives a line for each span; empty if there is none.
	log string
}

// New starts a collector, which stops when the test has ended. It appends a line for each span to a file, unless the name is empty, as
// the exporter debug of the OpenTelemetry Collector does.
func New(t testing.TB, log string) *Collector {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Collector{Address: listener.Addr().String(), log: log, server: grpc.NewServer()}
	collector.RegisterTraceServiceServer(c.server, c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := c.server.Serve(listener); err != nil {
			t.Errorf("serve the collector: %v", err)
		}
	}()
	t.Cleanup(func() {
		c.Stop()
		<-done
	})
	return c
}

// Configure writes a file for --tracing-config-file with this collector.
func (c *Collector) Configure(t testing.TB, file string, perMillion int) {
	t.Helper()
	content := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: %d\n",
		c.Address, perMillion)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the collector: connections are refused.
func (c *Collector) Stop() { c.server.Stop() }

// Export implements the service of the collector.
func (c *Collector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	content, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.Write(content)
	var lines strings.Builder
	for _, resource := range request.GetResourceSpans() {
		service := attributesOf(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				received := spanOf(service, span)
				c.spans = append(c.spans, received)
				fmt.Fprintln(&lines, received)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, c.write(lines.String())
}

func (c *Collector) write(lines string) error {
	if c.log == "" {
		return nil
	}
	file, err := os.OpenFile(c.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // the write has been checked
	_, err = file.WriteString(lines)
	return err
}

// Spans returns the received spans for which a function is true.
func (c *Collector) Spans(is func(Span) bool) (spans []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if is(span) {
			spans = append(spans, span)
		}
	}
	return spans
}

// Received returns everything that was received.
func (c *Collector) Received() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.received.Bytes())
}

// String returns the line of a span: its name, its IDs and its attributes.
func (s Span) String() string {
	line := []string{s.Name, s.Trace, s.ID}
	for name, value := range s.Attributes {
		line = append(line, name+"="+value)
	}
	slices.Sort(line[3:])
	return strings.Join(line, " ")
}

func spanOf(service string, span *trace.Span) Span {
	s := Span{
		Name: span.GetName(), Service: service, Attributes: attributesOf(span.GetAttributes()), Start: span.GetStartTimeUnixNano(),
		End: span.GetEndTimeUnixNano(), Failed: span.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR,
		Trace: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
	}
	for _, link := range span.GetLinks() {
		s.Links = append(s.Links, hex.EncodeToString(link.GetSpanId()))
	}
	return s
}

func attributesOf(pairs []*common.KeyValue) map[string]string {
	attributes := map[string]string{}
	for _, pair := range pairs {
		attributes[pair.GetKey()] = textOf(pair.GetValue())
	}
	return attributes
}

// textOf returns a value as text.
func textOf(value *common.AnyValue) string {
	switch v := value.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_ArrayValue:
		var items []string
		for _, item := range v.ArrayValue.GetValues() {
			items = append(items, textOf(item))
		}
		return "[" + strings.Join(items, ",") + "]"
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	}
	return value.String()
}
