"""The rules of ``base``, under the name that a metric also finds in the folder of its Space."""

from temporalwiki.base.normalization import normalize as normalize
