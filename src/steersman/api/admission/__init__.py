"""AdmissionReview (admission.k8s.io): what a webhook is asked, and what it may answer."""
