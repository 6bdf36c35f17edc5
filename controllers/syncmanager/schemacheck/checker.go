/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package schemacheck

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
)

// Schema is the schema of a resource that the hub publishes to mailboxes.
type Schema struct {
	// Name is the name of the APIResourceSchema, whose content never changes. Version is the version that is
	// synced.
	Name, Version string
	// OpenAPI is the schema of the version. It must not be changed.
	OpenAPI *apiextensionsv1.JSONSchemaProps
	// Kept prunes the fields of an object that the schema does not keep.
	Kept *transform.Pruner
	// WarnOnly is true if objects must be synced even if some of them do not fit.
	WarnOnly bool
}

// ID identifies the schema among the schemas of its resource.
func (s Schema) ID() string { return s.Name + "/" + s.Version }

// Resource is a resource to compare.
type Resource struct {
	Schema Schema
	// Target is the resource on the target, and Kind its kind there.
	Target schema.GroupVersionResource
	Kind   string
	// TrustedUntil delays the first comparison, because objects are known to fit from an earlier one; zero if they are not.
	TrustedUntil time.Time
}

// isSameCheck reports whether both resources need the same comparison.
func (r Resource) isSameCheck(other Resource) bool {
	return r.Target == other.Target && r.Kind == other.Kind && r.Schema.ID() == other.Schema.ID()
}

// maxCachedResults is for how many pairs of schemas the result is cached.
const maxCachedResults = 4096

// Checker compares the schemas of mailboxes with the schemas of targets. All targets share one; it is safe for
// concurrent use.
type Checker struct {
	documents *discovery.OpenAPICache
	results   *lru.Cache
}

// NewChecker returns a checker with an empty cache.
func NewChecker(clock clock.PassiveClock) *Checker {
	return &Checker{documents: discovery.NewOpenAPICache(clock), results: lru.New(maxCachedResults)}
}

// NewTargetSchemas returns the schemas of a target, which it has not read yet.
func (c *Checker) NewTargetSchemas(target *discovery.Client) *TargetSchemas {
	return &TargetSchemas{checker: c, reader: c.documents.NewSchemaReader(target)}
}

// TargetSchemas compares resources with the schemas of one target. It reads each schema once.
type TargetSchemas struct {
	checker *Checker
	reader  *discovery.SchemaReader
}

// WorkDuration returns the time spent on reading and comparing schemas, without the time spent waiting for the target.
func (s *TargetSchemas) WorkDuration() time.Duration { return s.reader.WorkDuration() }

// Check compares one resource. The error is why the target could not be read.
func (s *TargetSchemas) Check(ctx context.Context, desired Resource) (State, error) {
	served, err := s.reader.ServedSchema(ctx, desired.Target, desired.Kind)
	if err != nil {
		return stateOrError(err, desired.Target.Version)
	}
	key := [3]string{desired.Schema.Name, desired.Schema.Version, served.Key}
	if known, ok := s.checker.results.Get(key); ok {
		return known.(State), nil
	}
	targetSchema, err := served.Schema(ctx)
	if err != nil {
		return stateOrError(err, desired.Target.Version)
	}
	var findings []compatibility.Finding
	err = s.reader.RunLimited(ctx, func() error {
		findings = compatibility.Compare(ctx, withoutStatus(desired.Schema.OpenAPI), withoutStatus(targetSchema))
		return ctx.Err()
	})
	if err != nil {
		return notAnsweredState, err
	}
	state := stateForFindings(findings, served.BuiltIn)
	s.checker.results.Add(key, state)
	return state, nil
}

// stateOrError returns the state for an error. It also returns the error if the target may respond differently
// to another request.
func stateOrError(err error, version string) (State, error) {
	state, known := stateForError(err, version)
	if known {
		return state, nil
	}
	return state, err
}

// withoutStatus returns the schema without the status, which is never downsynced.
func withoutStatus(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if _, ok := s.Properties["status"]; !ok {
		return s
	}
	without := *s
	without.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(s.Properties))
	for name := range s.Properties {
		if name != "status" {
			without.Properties[name] = s.Properties[name]
		}
	}
	return &without
}
