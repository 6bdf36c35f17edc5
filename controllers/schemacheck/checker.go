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
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/synchub-dev/synchub/apis/schemas/compatibility"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/discovery"
)

// Schema is what mailboxes have of a resource from the hub.
type Schema struct {
	// Name is that of the APIResourceSchema, whose content never changes; Version is the one that is synced.
	Name, Version string
	// OpenAPI is the schema of the version. It must not be changed.
	OpenAPI *apiextensionsv1.JSONSchemaProps
	// Kept is what it keeps of an object.
	Kept *transform.Pruner
	// WarnOnly is true if objects are to be synced whether or not all fit.
	WarnOnly bool
}

// ID tells it from all others of its resource.
func (s Schema) ID() string { return s.Name + "/" + s.Version }

// Resource is a resource that is to be compared.
type Resource struct {
	Schema Schema
	// Target is what the resource is on the target, and Kind its kind there.
	Target schema.GroupVersionResource
	Kind   string
	// TrustedUntil is until when it need not be compared for the first time, since it is known otherwise that objects fit; zero if it
	// is not.
	TrustedUntil time.Time
}

// isSameCheck tells whether a comparison would be the same.
func (w Resource) isSameCheck(other Resource) bool {
	return w.Target == other.Target && w.Kind == other.Kind && w.Schema.Name == other.Schema.Name && w.Schema.Version == other.Schema.Version
}

// maxCachedResults are how many pairs of schemas the answer is remembered of.
const maxCachedResults = 4096

// Checker compares what mailboxes have with what targets serve. All targets share one.
type Checker struct {
	documents *discovery.OpenAPICache
	results   *lru.Cache
}

// NewChecker returns a checker that remembers nothing.
func NewChecker(clock clock.PassiveClock) *Checker {
	return &Checker{documents: discovery.NewOpenAPICache(clock), results: lru.New(maxCachedResults)}
}

// NewSession begins to look at a target. What is asked of it once is not asked again in the same look.
func (c *Checker) NewSession(target rest.Interface) *Session {
	return &Session{checker: c, reader: c.documents.NewSchemaReader(target)}
}

// Session is one look at a target.
type Session struct {
	checker *Checker
	reader  *discovery.SchemaReader
}

// WorkDuration returns for how long schemas were read and compared, without the time that the target took to answer.
func (l *Session) WorkDuration() time.Duration { return l.reader.WorkDuration() }

// Check compares one resource. The error says why the target could not be asked.
func (l *Session) Check(ctx context.Context, desired Resource) (State, error) {
	served, err := l.reader.ServedSchema(ctx, desired.Target, desired.Kind)
	if err != nil {
		state, known := stateForError(err, desired.Target.Version)
		if known {
			err = nil
		}
		return state, err
	}
	key := [3]string{desired.Schema.Name, desired.Schema.Version, served.Key}
	if known, ok := l.checker.results.Get(key); ok {
		return known.(State), nil
	}
	theirs, err := served.Schema(ctx)
	if err != nil {
		state, known := stateForError(err, desired.Target.Version)
		if known {
			err = nil // it would be the same the next time
		}
		return state, err
	}
	var findings []compatibility.Finding
	err = l.reader.RunLimited(ctx, func() error {
		findings = compatibility.Compare(ctx, withoutStatus(desired.Schema.OpenAPI), withoutStatus(theirs))
		return ctx.Err()
	})
	if err != nil {
		return notAnsweredState, err
	}
	state := stateForFindings(findings, served.BuiltIn)
	l.checker.results.Add(key, state)
	return state, nil
}

// withoutStatus returns the schema of what goes down: the status never does.
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
