"""Publishing of runs, at the place where users import it from."""

from karat.ext.publish.site import site as site
from karat.ext.publish.tracking import track as track
from karat.ext.publish.verification import Verification as Verification
from karat.ext.publish.verification import verify as verify
