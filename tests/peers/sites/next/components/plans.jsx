'use client';
import { useEffect, useState } from 'react';

export default function Plans() {
  const [plans, setPlans] = useState(null);
  useEffect(() => {
    fetch('/make/json?after=700&body=["Small","Large","Huge"]').then((answer) => answer.json()).then(setPlans);
  }, []);
  if (!plans) return <div className="wait" />;
  return (
    <div className="grid">
      {plans.map((plan) => (
        <div className="plan" key={plan}>
          <h3>{plan}</h3>
          <div className="mark" />
        </div>
      ))}
    </div>
  );
}
