"""Jobs: Pods until enough have succeeded, or too many have failed.

Source: kubernetes `pkg/controller/job/job_controller.go`.
"""

from __future__ import annotations

from steersman.controlplane.hollow.base import HollowController, Object, condition, phase, pod_from, with_conditions


class Jobs(HollowController):
    name = "hollow-jobs"
    group, resource, kind = "batch", "jobs", "Job"
    controls = (("", "pods"),)

    async def sync(self, obj: Object) -> None:
        spec = obj["spec"]
        if "deletionTimestamp" in obj["metadata"] or _is_over(obj):
            return
        if spec.get("suspend"):
            await self._suspend(obj)
            return
        pods = self.pods_of(obj)
        succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
        failed = sum(phase(pod) == "Failed" for pod in pods)
        active = [pod for pod in pods if phase(pod) in ("Pending", "Running")]
        wanted = spec.get("completions")
        too_many = failed > spec.get("backoffLimit", 6)
        complete = succeeded >= wanted if wanted is not None else bool(succeeded) and not active
        if not (too_many or complete):
            left = (wanted - succeeded if wanted is not None else spec.get("parallelism", 1)) - len(active)
            if wanted is None and succeeded:
                left = 0
            for _ in range(min(left, spec.get("parallelism", 1) - len(active))):
                await self._create(obj, pods)
                active.append({})
        await self._report(obj, len(active), succeeded, failed, complete=complete, too_many=too_many)

    async def _create(self, obj: Object, pods: list[Object]) -> None:
        spec, name = obj["spec"], obj["metadata"]["name"]
        labels, meta = {}, {"generateName": f"{name}-"}
        if spec.get("completionMode") == "Indexed":
            taken = {(pod["metadata"].get("annotations") or {}).get(_INDEX) for pod in pods if phase(pod) != "Failed"}
            index = next(str(each) for each in range(len(taken) + 1) if str(each) not in taken)
            labels[_INDEX] = index
            meta = {"generateName": f"{name}-{index}-"}
        pod = pod_from(obj, spec["template"], meta, labels)
        if labels:
            pod["metadata"]["annotations"] = {**pod["metadata"]["annotations"], **labels}
        await self.create("", "pods", pod)
        pods.append(pod)

    async def _suspend(self, obj: Object) -> None:
        for pod in self.pods_of(obj):
            if phase(pod) in ("Pending", "Running"):
                await self.delete("", "pods", pod)
        told = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
        conditions = with_conditions(obj, told, now=self.now())
        await self.set_status(obj, {"active": None, "startTime": None, "conditions": conditions})

    async def _report(
        self, obj: Object, active: int, succeeded: int, failed: int, *, complete: bool, too_many: bool
    ) -> None:
        now, status = self.now(), obj.get("status") or {}
        conditions: list[Object] = []
        if condition(obj, "Suspended"):
            resumed = {"reason": "JobResumed", "message": "Job resumed"}
            conditions.append({"type": "Suspended", "status": "False", **resumed})
        if complete:
            reached = {"reason": "CompletionsReached", "message": "Reached expected number of succeeded pods"}
            conditions += [{"type": each, "status": "True", **reached} for each in ("SuccessCriteriaMet", "Complete")]
        elif too_many:
            limit = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
            conditions += [{"type": each, "status": "True", **limit} for each in ("FailureTarget", "Failed")]
        over = complete or too_many
        await self.set_status(
            obj,
            {
                "startTime": status.get("startTime") or now,
                "active": 0 if over else active or None,
                "ready": 0,
                "succeeded": succeeded or None,
                "failed": failed or None,
                "terminating": 0,
                "uncountedTerminatedPods": {},
                "completionTime": now if complete else None,
                "conditions": with_conditions(obj, *conditions, now=now) or None,
            },
        )


_INDEX = "batch.kubernetes.io/job-completion-index"


def _is_over(obj: Object) -> bool:
    return any(condition(obj, each).get("status") == "True" for each in ("Complete", "Failed"))
