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

package observe

import (
	"errors"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// ReasonFor returns the reason of a failure that follows from the observed facts and the rules. It is empty for failures of
// requests.
func ReasonFor(err error) string {
	denied, isDenied := errors.AsType[*policy.DeniedError](err)
	switch {
	case isDenied:
		return denied.Reason
	case isError[*plan.HeldError](err):
		return plan.ReasonStoreWentBack
	case isError[*transform.TooLargeError](err):
		return plan.ReasonTooLarge
	case isError[*transform.InvalidObjectError](err):
		return plan.ReasonInvalid
	case isError[*RuleError](err), isError[*mutation.Error](err):
		return plan.ReasonRuleFailed
	case errors.Is(err, ErrNotServed):
		return plan.ReasonNotServed
	default:
		return ""
	}
}

func isError[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}
